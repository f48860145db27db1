"""Turns the live entries of a manifest into EXISTING entries of a new one, with the statistics that a rule leaves.

Everything else of an entry stays: what it left to its manifest (snapshot id, sequence numbers, first row id) is
written out. Source and target may be of different format versions. Large manifests go through the compiled kernel,
others through fastavro; both give the same bytes.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import fastavro
import numpy as np
import numpy.typing as npt

from planning_health.errors import WorkFailedError
from planning_health.maintenance.trim.rule import TrimRule
from planning_health.metadata.avro_reader import (
    METRIC_MAPS,
    AvroFile,
    AvroSchema,
    field_schema,
    fixed_as_bytes,
    names_by_field_id,
    non_null,
    without_logical_types,
)
from planning_health.metadata.manifest_list import ManifestFile
from planning_health.metadata.model import ADDED, DELETED, EXISTING

STATUS, SNAPSHOT_ID, DATA_FILE, SEQUENCE_NUMBER, FILE_SEQUENCE_NUMBER = range(5)
PARTITION, RECORD_COUNT, _BLOCK_SIZE, _CONTENT, FIRST_ROW_ID = 102, 103, 105, 134, 142
REQUIRED: Final = {_BLOCK_SIZE: 64 * 1024 * 1024, _CONTENT: 0}
"""What is written where the target requires a field that the source lacks; the block size is Iceberg's constant."""

Offsets = npt.NDArray[np.int64]


@dataclass(frozen=True)
class NewEntries:
    """The live entries of a manifest, encoded for another one.

    Attributes:
        content: the entries, one behind another.
        offsets: (entries + 1) where each begins, in physical order; DELETED ones take no bytes.
    """

    content: memoryview
    offsets: Offsets


def transcode(
    manifest: ManifestFile, source: AvroFile, target: AvroSchema, rule: TrimRule, *, compiled: bool
) -> NewEntries:
    """Encodes a manifest's live entries in another schema, with the statistics that the rule leaves.

    Args:
        manifest: the manifest, as the manifest list describes it.
        source: its content.
        target: the entry schema of the new manifest.
        rule: what is left of the statistics.
        compiled: use the compiled kernel where the schemas allow it.

    Raises:
        WorkFailedError: when an entry lacks what the target requires, or the bytes are damaged.
    """
    try:
        found = _compiled(manifest, source, target, rule) if compiled else None
        return found or _interpreted(manifest, source, target, rule)
    except (ValueError, KeyError, TypeError, EOFError) as error:
        raise WorkFailedError(
            f"the entries of {manifest.path} cannot be rewritten ({type(error).__name__}: {error})"
        ) from error


def _compiled(manifest: ManifestFile, source: AvroFile, target: AvroSchema, rule: TrimRule) -> NewEntries | None:
    """``None`` where Numba is not installed or a schema has an unusual part."""
    try:
        from planning_health.maintenance.trim.compiled_transcode import UnsupportedLayoutError, transcode_blocks
    except ModuleNotFoundError:
        return None
    try:
        return transcode_blocks(manifest, source, target, rule)
    except UnsupportedLayoutError:
        return None


def _interpreted(manifest: ManifestFile, source: AvroFile, target: AvroSchema, rule: TrimRule) -> NewEntries:
    entries = _Entries(manifest, source, target, rule)
    schema = fastavro.parse_schema(without_logical_types(fixed_as_bytes(target)))
    stream, ends = io.BytesIO(), [0]
    for entry in source.records():
        if (new := entries.new_entry(entry)) is not None:
            fastavro.schemaless_writer(stream, schema, new)
        ends.append(stream.tell())
    return NewEntries(stream.getbuffer(), np.array(ends, dtype=np.int64))


class _Entries:
    """Old entries to new ones, as records."""

    def __init__(self, manifest: ManifestFile, source: AvroFile, target: AvroSchema, rule: TrimRule) -> None:
        self.manifest, self.rule = manifest, rule
        self.next_row_id = manifest.first_row_id
        self.old, self.new = _Names(source.schema), _Names(target)

    def new_entry(self, entry: dict[str, Any]) -> dict[str, Any] | None:
        """The new record; ``None`` for a DELETED one."""
        old, manifest = self.old, self.manifest
        file = entry[old.entry[DATA_FILE]]
        status = entry[old.entry[STATUS]]
        inherits = status == ADDED or manifest.sequence_number == 0
        sequence_number = manifest.sequence_number if inherits else None
        row_id = self._first_row_id(file, status)
        if status == DELETED:
            return None
        own = {
            STATUS: EXISTING,
            SNAPSHOT_ID: _own(entry, old.entry, SNAPSHOT_ID, manifest.added_snapshot_id),
            SEQUENCE_NUMBER: _own(entry, old.entry, SEQUENCE_NUMBER, sequence_number),
            FILE_SEQUENCE_NUMBER: _own(entry, old.entry, FILE_SEQUENCE_NUMBER, sequence_number),
            DATA_FILE: self._file(file, row_id),
        }
        if own[SEQUENCE_NUMBER] is None:
            raise ValueError("an entry has no sequence number")
        return {name: own[field_id] for field_id, name in self.new.entry.items()}

    def _first_row_id(self, file: dict[str, Any], status: int) -> int | None:
        if self.next_row_id is None:
            return None
        known: int | None = _own(file, self.old.file, FIRST_ROW_ID, None)
        if known is None and status != DELETED:
            known = self.next_row_id
            self.next_row_id += file[self.old.file[RECORD_COUNT]]
        return known

    def _file(self, file: dict[str, Any], row_id: int | None) -> dict[str, Any]:
        made: dict[str, Any] = {}
        for field_id, name in self.new.file.items():
            value = _own(file, self.old.file, field_id, None)
            if field_id == FIRST_ROW_ID:
                value = row_id
            elif field_id == PARTITION:
                value = self._partition(value)
            elif field_id in METRIC_MAPS:
                value = self._map(field_id, value)
            made[name] = REQUIRED.get(field_id) if value is None else value
        return made

    def _map(self, field_id: int, pairs: list[dict[str, Any]] | None) -> list[dict[str, Any]] | None:
        if not pairs:
            return None
        (key, value), (new_key, new_value) = self.old.pairs[field_id], self.new.pairs[field_id]
        kept = ((pair[key], self.rule.keep(METRIC_MAPS[field_id], pair[key], pair[value])) for pair in pairs)
        return [{new_key: column, new_value: left} for column, left in kept if left is not None] or None

    def _partition(self, values: dict[str, Any]) -> dict[str, Any]:
        made = {}
        for field_id, (name, size) in self.new.partition.items():
            value = values.get(self.old.partition[field_id][0])
            if size is not None and value is not None and len(value) != size:  # a decimal of another precision
                value = int.from_bytes(value, "big", signed=True).to_bytes(size, "big", signed=True)
            made[name] = value
        return made


def _own(record: dict[str, Any], names: dict[int, str], field_id: int, inherited: Any) -> Any:
    value = record.get(names.get(field_id, ""))
    return inherited if value is None else value


class _Names:
    """The names that one schema gives to the specification's field ids."""

    def __init__(self, schema: AvroSchema) -> None:
        self.entry = names_by_field_id(schema)
        file = field_schema(schema, self.entry[DATA_FILE])
        self.file = names_by_field_id(file)
        self.pairs: dict[int, tuple[str, str]] = {}
        for field_id in METRIC_MAPS.keys() & self.file.keys():
            key, value = non_null(field_schema(file, self.file[field_id])["items"])["fields"]
            self.pairs[field_id] = key["name"], value["name"]
        partition = field_schema(file, self.file[PARTITION])
        self.partition = {key: (item["name"], _decimal_size(item)) for key, item in partition_fields(partition)}


def _decimal_size(item: dict[str, Any]) -> int | None:
    kind = non_null(item["type"])
    decimal = isinstance(kind, dict) and kind.get("type") == "fixed" and kind.get("logicalType") == "decimal"
    return kind["size"] if decimal else None


def partition_fields(schema: AvroSchema) -> Iterator[tuple[int, dict[str, Any]]]:
    """The fields of a partition record with their ids, which old writers left out and counted from 1000."""
    for position, item in enumerate(schema["fields"]):
        yield item.get("field-id", 1000 + position), item
