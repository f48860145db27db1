"""Records planning metadata in this process through PyIceberg's catalog and file IO: no Spark, no Java."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
from pydantic import ValidationError
from pyiceberg.catalog import Catalog
from pyiceberg.exceptions import NoSuchTableError
from pyiceberg.io import FileIO
from pyiceberg.table import Table
from pyiceberg.table.metadata import TableMetadata
from requests.exceptions import RequestException
from sqlalchemy.exc import OperationalError

from planning_health.catalog_contents import no_such_table
from planning_health.errors import InputError, NotMeasurableError, first_problem, told
from planning_health.identifiers import TableName
from planning_health.metadata.manifest_encoding import EntrySamples, sample_budgets, sample_manifest
from planning_health.metadata.manifest_list import ManifestFile, read_manifest_list
from planning_health.metadata.manifest_reader import DecodedManifest, concat_files, decode_manifest, worth_compiling
from planning_health.metadata.model import DATA, DELETES, MANIFESTS_SCHEMA, PlanningMetadata, TableInfo
from planning_health.metadata.recorded_columns import columns_to_record
from planning_health.metadata.snapshot_choice import SnapshotChoice
from planning_health.metadata.store import delete_files_recorded
from planning_health.redaction import first_line

_READERS = 8

ReadBytes = Callable[[str], bytes]


def record_with_pyiceberg(
    catalog: Catalog, name: TableName, *, queried: Iterable[str] = (), choice: SnapshotChoice | None = None
) -> PlanningMetadata:
    """Records a table's planning metadata.

    Args:
        catalog: an open PyIceberg catalog.
        name: the table.
        queried: columns of the queries whose statistics are recorded beside the partition and sort columns.
        choice: another snapshot than the current one.

    Raises:
        InputError: when the table or the snapshot does not exist.
        NotMeasurableError: when its metadata cannot be read, with the reason.
    """
    table = open_table(catalog, name)
    return record(name, table.metadata, table.metadata_location, reader(table.io), queried=queried, choice=choice)


def open_table(catalog: Catalog, name: TableName) -> Table:
    """Loads a table.

    Raises:
        InputError: when it does not exist, or the catalog cannot be reached.
        NotMeasurableError: when its metadata cannot be read, with the reason.
    """
    try:
        return catalog.load_table(name.identifier)
    except NoSuchTableError as error:
        raise no_such_table(catalog, name) from error
    except ValidationError as error:
        raise NotMeasurableError(f"the table metadata is not supported or damaged: {first_problem(error)}") from error
    except (OperationalError, RequestException) as error:
        raise InputError(f"catalog {name.catalog!r} cannot be reached: {told(error)}") from error
    except Exception as error:  # whatever a catalog or a store raises, this table cannot be measured
        raise NotMeasurableError(f"the table cannot be loaded ({type(error).__name__}: {first_line(error)})") from error


def reader(file_io: FileIO) -> ReadBytes:
    """A function that reads whole files through PyIceberg's file IO and says in one line what is missing."""

    def read(path: str) -> bytes:
        try:
            with file_io.new_input(path).open() as stream:
                return stream.read()
        except FileNotFoundError as error:
            raise NotMeasurableError(f"{path} is missing") from error
        except Exception as error:  # each store has its own exceptions; all mean that the file cannot be read
            raise NotMeasurableError(f"{path} cannot be read ({first_line(error)})") from error

    return read


def record(
    name: TableName,
    metadata: TableMetadata,
    metadata_location: str,
    read: ReadBytes,
    *,
    queried: Iterable[str] = (),
    choice: SnapshotChoice | None = None,
) -> PlanningMetadata:
    """Records one snapshot, given the table's metadata and a way to read files; see :func:`record_with_pyiceberg`."""
    started = time.perf_counter()
    snapshot_id, schema = (choice or SnapshotChoice()).resolve(metadata)
    manifests, list_bytes = manifests_of(metadata, snapshot_id, read)
    base = columns_to_record(metadata, schema, queried)
    compiled = worth_compiling(manifests)
    budgets = sample_budgets([manifest.ordinal for manifest in manifests])
    deletes = _read_all([m for m in manifests if m.content == DELETES], base, read, budgets, compiled=compiled)
    equality_ids = frozenset[int]().union(*(decoded.equality_ids for decoded, _ in deletes.values()))
    recorded = base | equality_ids
    if recorded != base:
        deletes = _read_all([m for m in manifests if m.content == DELETES], recorded, read, budgets, compiled=compiled)
    data = _read_all([m for m in manifests if m.content == DATA], recorded, read, budgets, compiled=compiled)
    rows = [manifest.columns() | (data | deletes)[manifest.ordinal][1] for manifest in manifests]
    return PlanningMetadata(
        info=TableInfo(
            name=name,
            metadata=metadata,
            metadata_location=metadata_location,
            snapshot_id=snapshot_id,
            ref=choice.ref if choice else None,
            schema=schema,
            recorded_field_ids=recorded,
            recorder="pyiceberg",
            measured_at=datetime.now(UTC).isoformat(timespec="milliseconds"),
            manifest_list_bytes=list_bytes,
            record_ms=(time.perf_counter() - started) * 1000,
        ),
        manifests=manifests_table(rows),
        data_files=concat_files((decoded.files for decoded, _ in data.values()), recorded),
        delete_files=concat_files((decoded.files for decoded, _ in deletes.values()), delete_files_recorded(recorded)),
        samples=EntrySamples.of(row["sample"] for row in rows),
    )


def manifests_of(metadata: TableMetadata, snapshot_id: int | None, read: ReadBytes) -> tuple[list[ManifestFile], int]:
    """The manifests of a snapshot in the manifest list's order, and that list's size in bytes.

    Raises:
        NotMeasurableError: when the manifest list cannot be read.
    """
    snapshot = metadata.snapshot_by_id(snapshot_id) if snapshot_id is not None else None
    if snapshot_id is None:
        return [], 0
    if snapshot is None:
        raise NotMeasurableError(f"snapshot {snapshot_id} is the current one, but is not in the table's metadata")
    content = read(snapshot.manifest_list)
    return read_manifest_list(snapshot.manifest_list, content), len(content)


def manifests_table(rows: list[dict[str, Any]]) -> pa.Table:
    """Rows of manifests as the planning metadata holds them."""
    return pa.Table.from_pylist(rows, schema=MANIFESTS_SCHEMA)  # other keys of a row are left out


def read_and_decode(
    manifest: ManifestFile, recorded: frozenset[int], read: ReadBytes, *, compiled: bool, sample_bytes: int = 0
) -> tuple[DecodedManifest, dict[str, Any]]:
    """Reads one manifest: its entries, and the columns of its row that only reading tells, with the times taken.

    With ``sample_bytes`` the row also has a ``sample`` of about so many bytes of its entries; else it is ``None``.
    """
    started = time.perf_counter()
    content = read(manifest.path)
    fetched = time.perf_counter()
    decoded = decode_manifest(manifest, content, recorded, compiled=compiled)
    timings = {
        "file_size": len(content),
        "read_ms": (fetched - started) * 1000,
        "decode_ms": (time.perf_counter() - fetched) * 1000,
    }
    sample = (
        sample_manifest(manifest.path, manifest.partition_spec_id, manifest.content, content, sample_bytes)
        if sample_bytes
        else None
    )
    return decoded, decoded.columns() | timings | {"sample": sample}


def _read_all(
    manifests: list[ManifestFile],
    recorded: frozenset[int],
    read: ReadBytes,
    sample_bytes: Mapping[int, int],
    *,
    compiled: bool,
) -> dict[int, tuple[DecodedManifest, dict[str, Any]]]:
    with ThreadPoolExecutor(_READERS) as pool:
        results = pool.map(
            lambda manifest: read_and_decode(
                manifest, recorded, read, compiled=compiled, sample_bytes=sample_bytes.get(manifest.ordinal, 0)
            ),
            manifests,
        )
        return {manifest.ordinal: result for manifest, result in zip(manifests, results, strict=True)}
