"""Runs the compiled kernel over a manifest; see :mod:`planning_health.maintenance.trim.transcode`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from planning_health.maintenance.trim import transcode_kernel as trim
from planning_health.maintenance.trim.rule import TrimRule
from planning_health.maintenance.trim.transcode import (
    DATA_FILE,
    FILE_SEQUENCE_NUMBER,
    FIRST_ROW_ID,
    PARTITION,
    RECORD_COUNT,
    REQUIRED,
    SEQUENCE_NUMBER,
    SNAPSHOT_ID,
    STATUS,
    NewEntries,
    partition_fields,
)
from planning_health.metadata import avro_kernel as wire
from planning_health.metadata.avro_reader import (
    METRIC_MAPS,
    AvroFile,
    AvroSchema,
    field_schema,
    names_by_field_id,
    non_null,
)
from planning_health.metadata.manifest_list import ManifestFile
from planning_health.metadata.model import EXISTING

Key = tuple[str, int]
"""Part of the entry, and field id: ``("entry", 1)``, ``("file", 100)``, ``("partition", 1000)``."""
Ints = npt.NDArray[np.int64]
Row = tuple[int, int, int, int]

_MEANINGS: Final[dict[Key, int]] = {
    ("entry", STATUS): trim.STATUS,
    ("entry", SNAPSHOT_ID): trim.SNAPSHOT_ID,
    ("entry", SEQUENCE_NUMBER): trim.SEQUENCE_NUMBER,
    ("entry", FILE_SEQUENCE_NUMBER): trim.FILE_SEQUENCE_NUMBER,
    ("file", FIRST_ROW_ID): trim.FIRST_ROW_ID,
    ("file", RECORD_COUNT): trim.RECORD_COUNT,
}
_BOUNDS: Final = {"lower_bound": trim.LOWER_MAP, "upper_bound": trim.UPPER_MAP}
_FIXED_BYTES: Final = {"boolean": 1, "float": 4, "double": 8}

_DENSE_IDS: Final = 1 << 20
"""Smaller field ids are looked up by place: those of a table's columns."""
_ROOM_PER_ENTRY: Final = 128
"""Bytes by which a new entry may be longer than the old one: what it inherited is written out."""


class UnsupportedLayoutError(Exception):
    """The schemas have or differ in something that the kernel does not know; fastavro's way does."""


def transcode_blocks(manifest: ManifestFile, source: AvroFile, target: AvroSchema, rule: TrimRule) -> NewEntries:
    """Encodes a manifest's live entries for another one; see :func:`transcode.transcode`.

    Raises:
        UnsupportedLayoutError: when the kernel does not know the schemas.
        ValueError: when the bytes are damaged, or an entry lacks what the target requires.
    """
    source_program, target_program = _programs(source.schema, target)
    rows = sum(count for count, _ in source.blocks)
    longest = max((len(content) for _, content in source.blocks), default=0)
    out = np.empty(source.uncompressed_bytes + rows * _ROOM_PER_ENTRY, dtype=np.uint8)
    maps, scratch = np.empty(longest + 16, dtype=np.uint8), np.empty(longest + 16, dtype=np.uint8)
    offsets = np.zeros(rows + 1, dtype=np.int64)
    first_row_id = -1 if manifest.first_row_id is None else manifest.first_row_id
    inherited = np.array([manifest.added_snapshot_id, manifest.sequence_number, first_row_id], dtype=np.int64)
    next_row_id = np.array([first_row_id], dtype=np.int64)
    tables = _tables(rule)
    row = 0
    for count, content in source.blocks:
        end = trim.transcode(
            np.frombuffer(content, dtype=np.uint8),
            count,
            source_program,
            target_program,
            inherited,
            next_row_id,
            *tables,
            scratch,
            maps,
            out,
            row,
            offsets,
        )
        if end != len(content):
            raise ValueError("a block holds more bytes than its entries")
        row += count
    return NewEntries(memoryview(out.data)[: offsets[-1]], offsets)


def _programs(source: AvroSchema, target: AvroSchema) -> tuple[Ints, Ints]:
    old, new = list(_fields(source)), list(_fields(target))
    places = {key: place for place, (key, _, _) in enumerate(old)}
    source_rows = [_source_row(*field) for field in old]
    target_rows = [_target_row(*field, places.get(field[0], -1), source_rows) for field in new]
    return np.array(source_rows, dtype=np.int64), np.array(target_rows, dtype=np.int64)


def _source_row(key: Key, schema: Any, null: int) -> Row:
    if _is_map(key):
        return wire.MAP, 0, null, _BOUNDS.get(METRIC_MAPS[key[1]], trim.COUNTS_MAP)
    return *_opcode(schema), null, _MEANINGS.get(key, trim.PLAIN)


def _target_row(key: Key, schema: Any, null: int, place: int, source: list[Row]) -> Row:
    if key == ("entry", STATUS):
        return trim.CONSTANT, -1, null, EXISTING
    meaning = _MEANINGS.get(key)
    if meaning is not None and meaning != trim.RECORD_COUNT:
        return trim.INHERITED, meaning, null, 0
    if place < 0 and null < 0 and key[0] == "file" and key[1] in REQUIRED:
        return trim.CONSTANT, -1, null, REQUIRED[key[1]]
    if place >= 0 and not _is_map(key) and _opcode(schema) != source[place][:2]:
        raise UnsupportedLayoutError(str(key))
    return trim.COPY, place, null, 0


def _is_map(key: Key) -> bool:
    return key[0] == "file" and key[1] in METRIC_MAPS


def _fields(schema: AvroSchema) -> Iterator[tuple[Key, Any, int]]:
    """The fields of an entry in physical order: key, type without null, index of null in its union (−1: none)."""
    file_name = names_by_field_id(schema)[DATA_FILE]
    for item in schema["fields"]:
        if item["name"] != file_name:
            yield ("entry", item["field-id"]), *_plain(item["type"])
            continue
        for inner in field_schema(schema, file_name)["fields"]:
            if inner["field-id"] != PARTITION:
                yield ("file", inner["field-id"]), *_plain(inner["type"])
                continue
            for field_id, part in partition_fields(inner["type"]):
                yield ("partition", field_id), *_plain(part["type"])


def _plain(schema: Any) -> tuple[Any, int]:
    if not isinstance(schema, list):
        return schema, -1
    if len(schema) != 2 or "null" not in schema:
        raise UnsupportedLayoutError(str(schema))
    return non_null(schema), schema.index("null")


def _opcode(schema: Any) -> tuple[int, int]:
    """How a value lies on the wire: the kernel's opcode, and the bytes of a value of fixed length."""
    kind = schema["type"] if isinstance(schema, dict) else schema
    if kind in ("int", "long"):
        return wire.LONG, 0
    if kind in ("bytes", "string"):
        return wire.SPAN, 0
    if kind in _FIXED_BYTES:
        return wire.FIXED, _FIXED_BYTES[kind]
    if kind == "fixed" and "logicalType" in schema:  # else Java writes a length before it, and others do not
        return wire.FIXED, schema["size"]
    if kind == "array" and schema["items"] in ("int", "long"):
        return wire.LONGS, 0
    raise UnsupportedLayoutError(str(schema))


def _tables(rule: TrimRule) -> tuple[Ints, Ints, Ints, Ints]:
    """The rule as the kernel takes it."""
    small = {field_id: kept for field_id, kept in rule.columns.items() if field_id < _DENSE_IDS}
    large = {field_id: kept for field_id, kept in rule.columns.items() if field_id >= _DENSE_IDS}
    lengths = np.full(max(small, default=0) + 1, trim.DROPPED, dtype=np.int64)
    texts = np.zeros(len(lengths), dtype=np.int64)
    for field_id, kept in small.items():
        lengths[field_id], texts[field_id] = kept.length, kept.text
    other_lengths = [kept.length for kept in large.values()]
    return lengths, texts, np.array(list(large), dtype=np.int64), np.array(other_lengths, dtype=np.int64)
