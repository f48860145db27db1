"""Saves and loads planning metadata: Parquet files and a ``table.json`` that is written last."""

from __future__ import annotations

import json
from typing import Any, Final

import fsspec
import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import BaseModel, ValidationError
from pyiceberg.schema import Schema
from pyiceberg.table.metadata import TableMetadata, TableMetadataUtil

from planning_health.errors import NotMeasurableError
from planning_health.identifiers import TableName
from planning_health.metadata.manifest_encoding import SAMPLES_SCHEMA, EntrySamples
from planning_health.metadata.model import (
    DELETE_FILE_PATH_ID,
    DELETE_FILE_POS_ID,
    MANIFESTS_SCHEMA,
    PlanningMetadata,
    TableInfo,
    files_schema,
)
from planning_health.run_folder import read_bytes, write_bytes

SCHEMA_VERSION: Final = 1
DATA_FILES: Final = "data_files"
DELETE_FILES: Final = "delete_files"


def parse_table_metadata(raw: str) -> TableMetadata:
    """Parses Iceberg's table metadata JSON.

    Raises:
        NotMeasurableError: when it uses something that is not supported, naming it.
    """
    try:
        return TableMetadataUtil.parse_raw(raw)
    except (ValidationError, ValueError) as error:
        first = " ".join(str(error).split())[:300]
        raise NotMeasurableError(f"the table metadata cannot be read: {first}") from error


def delete_files_recorded(recorded: frozenset[int]) -> frozenset[int]:
    """The recorded columns of delete files: also the reserved ones of position deletes."""
    return recorded | {DELETE_FILE_PATH_ID, DELETE_FILE_POS_ID}


def save(metadata: PlanningMetadata, folder: str) -> None:
    """Writes a recording that is whole in memory into a folder (fsspec URL)."""
    clear(folder)
    write_parquet(metadata.data_files, f"{folder}/{DATA_FILES}/part-00000.parquet")
    write_parquet(metadata.delete_files, f"{folder}/{DELETE_FILES}/part-00000.parquet")
    save_table(metadata.info, metadata.manifests, metadata.samples, folder)


def clear(folder: str) -> None:
    """Removes what an earlier attempt of the same run left in the folder."""
    filesystem, path = fsspec.url_to_fs(folder)
    if filesystem.exists(path):
        filesystem.rm(path, recursive=True)


def save_table(info: TableInfo, manifests: pa.Table, samples: EntrySamples, folder: str) -> None:
    """Writes the manifests, the samples and then ``table.json``, which completes the recording."""
    write_parquet(manifests, f"{folder}/manifests.parquet")
    write_parquet(samples.table, f"{folder}/samples.parquet")
    document = {
        "schema_version": SCHEMA_VERSION,
        "catalog": info.name.catalog,
        "namespace": list(info.name.namespace),
        "name": info.name.name,
        "metadata": _json(info.metadata),
        "metadata_location": info.metadata_location,
        "snapshot_id": info.snapshot_id,
        "ref": info.ref,
        "schema": _json(info.schema),
        "recorded_field_ids": sorted(info.recorded_field_ids),
        "recorder": info.recorder,
        "measured_at": info.measured_at,
        "manifest_list_bytes": info.manifest_list_bytes,
        "record_ms": info.record_ms,
    }
    write_bytes(f"{folder}/table.json", json.dumps(document, ensure_ascii=False).encode())


def _json(model: BaseModel) -> Any:
    """A model of PyIceberg in Iceberg's JSON; its own method refuses format version 3, which is only read here."""
    return json.loads(BaseModel.model_dump_json(model, by_alias=True, exclude_none=True))


def write_parquet(table: pa.Table, url: str) -> None:
    """Writes one Parquet file so that it appears as a whole."""
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, compression="zstd")
    write_bytes(url, sink.getvalue().to_pybytes())


def load(folder: str) -> PlanningMetadata:
    """Loads a recording.

    Raises:
        NotMeasurableError: when the folder holds no complete recording, or one of an unknown version.
    """
    content = read_bytes(f"{folder}/table.json")
    if content is None:
        raise NotMeasurableError(f"{folder} holds no complete measurement (table.json is missing)")
    info = _table_info(json.loads(content))
    recorded = info.recorded_field_ids
    return PlanningMetadata(
        info=info,
        manifests=_read_parquet(f"{folder}/manifests.parquet").cast(MANIFESTS_SCHEMA),
        data_files=_read_folder(f"{folder}/{DATA_FILES}", files_schema(recorded)),
        delete_files=_read_folder(f"{folder}/{DELETE_FILES}", files_schema(delete_files_recorded(recorded))),
        samples=_read_samples(f"{folder}/samples.parquet"),
    )


def _table_info(document: dict[str, Any]) -> TableInfo:
    version = document.get("schema_version")
    if version != SCHEMA_VERSION:
        raise NotMeasurableError(f"planning metadata of schema version {version!r}; expected {SCHEMA_VERSION}")
    return TableInfo(
        name=TableName(document["catalog"], tuple(document["namespace"]), document["name"]),
        metadata=parse_table_metadata(json.dumps(document["metadata"])),
        metadata_location=document["metadata_location"],
        snapshot_id=document["snapshot_id"],
        ref=document["ref"],
        schema=Schema.model_validate(document["schema"]),
        recorded_field_ids=frozenset(document["recorded_field_ids"]),
        recorder=document["recorder"],
        measured_at=document["measured_at"],
        manifest_list_bytes=document["manifest_list_bytes"],
        record_ms=document["record_ms"],
    )


def _read_parquet(url: str) -> pa.Table:
    filesystem, path = fsspec.url_to_fs(url)
    with filesystem.open(path, "rb") as stream:
        return pq.read_table(stream)


def _read_samples(url: str) -> EntrySamples:
    """The samples; none in a recording that an earlier version made."""
    filesystem, path = fsspec.url_to_fs(url)
    return EntrySamples(_read_parquet(url).cast(SAMPLES_SCHEMA)) if filesystem.exists(path) else EntrySamples()


def _read_folder(url: str, schema: pa.Schema) -> pa.Table:
    filesystem, root = fsspec.url_to_fs(url)
    if not filesystem.exists(root):
        return schema.empty_table()
    parts = []
    for path in sorted(filesystem.ls(root, detail=False)):
        if str(path).endswith(".parquet"):
            with filesystem.open(path, "rb") as stream:
                parts.append(pq.read_table(stream).cast(schema))
    if not parts:
        return schema.empty_table()
    return pa.concat_tables(parts).sort_by([("manifest_ordinal", "ascending"), ("position", "ascending")])
