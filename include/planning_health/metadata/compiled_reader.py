"""Decodes a manifest with the compiled kernel: columns are filled directly, no Python object an entry.

Gives exactly what ``manifest_reader`` gives with fastavro, several tens of times faster once it is compiled. Compiling
takes seconds (the result is cached on disk), so small snapshots do not come here.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from planning_health.metadata import avro_kernel as kernel
from planning_health.metadata.avro_reader import METRIC_MAPS, AvroFile, field_schema, names_by_field_id
from planning_health.metadata.manifest_list import ManifestFile
from planning_health.metadata.model import ADDED, DELETED, files_schema

Ints = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

_DENSE_IDS: Final = 1 << 20
"""Statistics bytes are counted for field ids below this, and for the reserved ones."""
_RESERVED_IDS: Final = np.arange(2147483447, 2147483648, dtype=np.int64)
"""Field ids that the specification reserves for metadata columns; all others are counted from 1."""

_LONG_FIELDS: Final = {
    0: "status",
    1: "snapshot_id",
    3: "sequence_number",
    4: "file_sequence_number",
    103: "record_count",
    104: "file_size_in_bytes",
    134: "content",
    140: "sort_order_id",
    142: "first_row_id",
    144: "content_offset",
    145: "content_size_in_bytes",
}
_TEXT_FIELDS: Final = {100: "file_path", 101: "file_format", 143: "referenced_data_file"}
_LIST_FIELDS: Final = {132: "split_offsets", 135: "equality_ids"}

_INTEGER_BYTES: Final = {"int": "<i4", "long": "<i8"}
_FIXED_BYTES: Final = {"boolean": 1, "float": 4, "double": 8}


class UnsupportedLayoutError(Exception):
    """The schema has a part that the compiled decoder does not know; the other decoder does."""


@dataclass
class _Slots:
    """Which slot of the kernel's arrays holds which column, and the program that fills them."""

    program: list[tuple[int, int, int]] = field(default_factory=list)
    longs: dict[str, int] = field(default_factory=dict)
    spans: dict[str, int] = field(default_factory=dict)
    maps: dict[str, int] = field(default_factory=dict)
    partition: list[tuple[str, str, str]] = field(default_factory=list)  # kind, slot name, encoding

    def long(self, name: str) -> int:
        return self.longs.setdefault(name, len(self.longs))

    def span(self, name: str) -> int:
        return self.spans.setdefault(name, len(self.spans))


def _compile(avro: AvroFile) -> _Slots:
    slots = _Slots()
    entry_names = names_by_field_id(avro.schema)
    file_name = entry_names[2]
    for item in avro.schema["fields"]:
        if item["name"] == file_name:
            for inner in field_schema(avro.schema, file_name)["fields"]:
                _compile_field(slots, inner)
        else:
            _compile_field(slots, item)
    return slots


def _compile_field(slots: _Slots, item: dict[str, Any]) -> None:
    schema = item["type"]
    if not isinstance(schema, list):
        slots.program += _instructions(slots, item, schema)
        return
    if len(schema) != 2 or "null" not in schema:
        raise UnsupportedLayoutError(item["name"])
    null = schema.index("null")
    body = _instructions(slots, item, schema[1 - null])
    slots.program += [(kernel.UNION, len(body), null), *body]


def _instructions(slots: _Slots, item: dict[str, Any], schema: Any) -> list[tuple[int, int, int]]:
    field_id = item.get("field-id", -1)
    if field_id == 102:
        return _partition(slots, schema)
    if field_id in METRIC_MAPS:
        name = METRIC_MAPS[field_id]
        return [(kernel.MAP, slots.maps.setdefault(name, len(slots.maps)), int(name.endswith("bound")))]
    if field_id in _LIST_FIELDS:
        name = _LIST_FIELDS[field_id]
        return [(kernel.LONGS, slots.long(name), list(_LIST_FIELDS).index(field_id))]
    name = _LONG_FIELDS.get(field_id) or _TEXT_FIELDS.get(field_id) or f"unused {item['name']}"
    return [_primitive(slots, name, schema)]


def _primitive(slots: _Slots, name: str, schema: Any) -> tuple[int, int, int]:
    kind = schema["type"] if isinstance(schema, dict) else schema
    if kind in _INTEGER_BYTES:
        return (kernel.LONG, slots.long(name), 0)
    if kind in ("bytes", "string"):
        return (kernel.SPAN, slots.span(name), 0)
    if kind in _FIXED_BYTES:
        return (kernel.FIXED, slots.span(name), _FIXED_BYTES[kind])
    if kind == "fixed" and "logicalType" in schema:  # else Java may have written a length: see avro_reader
        return (kernel.FIXED, slots.span(name), schema["size"])
    raise UnsupportedLayoutError(f"{name}: {kind}")


def _partition(slots: _Slots, schema: dict[str, Any]) -> list[tuple[int, int, int]]:
    body: list[tuple[int, int, int]] = []
    for position, item in enumerate(schema["fields"]):
        name = f"partition {position}"
        branches = item["type"] if isinstance(item["type"], list) else [item["type"]]
        plain = next((branch for branch in branches if branch != "null"), "null")
        instruction = _primitive(slots, name, plain)
        if len(branches) > 1:
            body.append((kernel.UNION, 1, branches.index("null")))
        body.append(instruction)
        kind = plain["type"] if isinstance(plain, dict) else plain
        decimal = isinstance(plain, dict) and plain.get("logicalType") == "decimal"
        if kind in _INTEGER_BYTES:
            slots.partition.append(("long", name, _INTEGER_BYTES[kind]))
        else:
            slots.partition.append(("span", name, "decimal" if decimal else "raw"))
    return body


class _Arrays:
    """The kernel's outputs for one manifest."""

    def __init__(self, avro: AvroFile, slots: _Slots, recorded: frozenset[int]) -> None:
        counts = [count for count, _ in avro.blocks]
        contents = [content for _, content in avro.blocks]
        if any(count > len(content) for count, content in avro.blocks):
            raise ValueError("a block counts more records than it has bytes")
        self.rows = sum(counts)
        self.slots = slots
        self.recorded = np.array(sorted(recorded), dtype=np.int64)
        self.buffer = np.frombuffer(b"".join(contents), dtype=np.uint8)
        self.longs = np.zeros((len(slots.longs), self.rows), dtype=np.int64)
        self.longs_valid = np.zeros((len(slots.longs), self.rows), dtype=bool)
        self.starts = np.zeros((len(slots.spans), self.rows), dtype=np.int64)
        self.lengths = np.full((len(slots.spans), self.rows), -1, dtype=np.int64)
        self.list_values = np.empty((len(_LIST_FIELDS), max(1, len(self.buffer))), dtype=np.int64)
        self.list_used = np.zeros(len(_LIST_FIELDS), dtype=np.int64)
        shape = (len(slots.maps), len(self.recorded), self.rows)
        self.map_values = np.zeros(shape, dtype=np.int64)
        self.map_lengths = np.full(shape, -1, dtype=np.int64)
        self.sizes = np.zeros(_DENSE_IDS, dtype=np.int64)
        self.largest = np.zeros(1, dtype=np.int64)
        self.reserved_sizes = np.zeros(len(_RESERVED_IDS), dtype=np.int64)
        program = np.array(slots.program, dtype=np.int64).reshape(-1, 3)
        column_of = self._column_of()
        row, offset = 0, 0
        for count, content in avro.blocks:
            end = kernel.walk(
                np.frombuffer(content, dtype=np.uint8),
                count,
                row,
                program,
                self.recorded,
                offset,
                self.longs,
                self.longs_valid,
                self.starts,
                self.lengths,
                self.list_values,
                self.list_used,
                self.map_values,
                self.map_lengths,
                column_of,
                self.sizes,
                self.largest,
                _RESERVED_IDS,
                self.reserved_sizes,
            )
            if end != len(content) and not avro.beginning:
                raise ValueError("a block holds more bytes than its records")
            row += count
            offset += len(content)

    def _column_of(self) -> Ints:
        dense = self.recorded[self.recorded < _DENSE_IDS]
        column_of = np.full(int(dense.max(initial=0)) + 1, -1, dtype=np.int64)
        column_of[dense] = np.arange(len(dense))  # the recorded ids are sorted
        return column_of

    def integers(self, name: str) -> tuple[Ints, Mask]:
        slot = self.slots.longs.get(name)
        if slot is None:
            return np.zeros(self.rows, dtype=np.int64), np.zeros(self.rows, dtype=bool)
        return self.longs[slot], self.longs_valid[slot]

    def spans(self, name: str) -> pa.Array:
        slot = self.slots.spans.get(name)
        if slot is None:
            return pa.nulls(self.rows, pa.binary())
        return self._binary(self.starts[slot], self.lengths[slot])

    def decimals(self, name: str) -> pa.Array:
        slot = self.slots.spans[name]
        starts, lengths = self.starts[slot].copy(), self.lengths[slot].copy()
        kernel.trim_unscaled(self.buffer, starts, lengths)
        return self._binary(starts, lengths)

    def lists(self, name: str, item_type: pa.DataType) -> pa.Array:
        place = list(_LIST_FIELDS.values()).index(name)
        counts, valid = self.integers(name)
        offsets = np.concatenate(([0], np.cumsum(counts))).astype(np.int32)
        values = pa.array(self.list_values[place, : self.list_used[place]]).cast(item_type)
        return pa.ListArray.from_arrays(pa.array(offsets), values, mask=pa.array(~valid))

    def statistic(self, statistic: str, field_id: int) -> pa.Array:
        column = int(np.searchsorted(self.recorded, field_id))
        is_bound = statistic.endswith("bound")
        slot = self.slots.maps.get(statistic)
        if slot is None:
            return pa.nulls(self.rows, pa.binary() if is_bound else pa.int64())
        values, lengths = self.map_values[slot, column], self.map_lengths[slot, column]
        return self._binary(values, lengths) if is_bound else pa.array(values, mask=lengths < 0)

    def statistics_bytes(self) -> Counter[int]:
        present = np.flatnonzero(self.sizes[: self.largest[0] + 1])
        found = Counter({int(field_id): int(self.sizes[field_id]) for field_id in present})
        reserved = np.flatnonzero(self.reserved_sizes)
        found.update({int(_RESERVED_IDS[place]): int(self.reserved_sizes[place]) for place in reserved})
        return found

    def _binary(self, starts: Ints, lengths: Ints) -> pa.Array:
        offsets = np.concatenate(([0], np.cumsum(np.maximum(lengths, 0))))
        data = kernel.gather(self.buffer, starts, lengths, offsets)
        valid = pa.array(lengths >= 0).buffers()[1]
        buffers = [valid, pa.py_buffer(offsets.astype(np.int32)), pa.py_buffer(data)]
        return pa.Array.from_buffers(pa.binary(), self.rows, buffers)


def decode_columns(manifest: ManifestFile, avro: AvroFile, recorded: frozenset[int]) -> tuple[pa.Table, Counter[int]]:
    """All entries of a manifest as columns of ``files_schema``, and the statistics bytes by field id.

    Raises:
        UnsupportedLayoutError: when the schema has a part that this decoder does not know.
        ValueError: when the bytes are damaged.
    """
    arrays = _Arrays(avro, _compile(avro), recorded)
    columns = _inherited(manifest, arrays) | _plain(manifest, arrays) | {"partition": _partition_column(arrays)}
    schema = files_schema(recorded)
    for name in schema.names:
        statistic, _, field_id = name.partition(".")
        if field_id:
            columns[name] = arrays.statistic(statistic, int(field_id))
    table = pa.table([columns[item.name].cast(item.type) for item in schema], schema=schema)
    return table, arrays.statistics_bytes()


def _plain(manifest: ManifestFile, arrays: _Arrays) -> dict[str, pa.Array]:
    rows = arrays.rows
    columns: dict[str, pa.Array] = {
        "manifest_ordinal": pa.array(np.full(rows, manifest.ordinal, dtype=np.int32)),
        "position": pa.array(np.arange(rows, dtype=np.int32)),
        "spec_id": pa.array(np.full(rows, manifest.partition_spec_id, dtype=np.int32)),
        "content": pa.array(arrays.integers("content")[0]),
        "split_offsets": arrays.lists("split_offsets", pa.int64()),
        "equality_ids": arrays.lists("equality_ids", pa.int32()),
    }
    for name in (
        "status",
        "record_count",
        "file_size_in_bytes",
        "sort_order_id",
        "content_offset",
        "content_size_in_bytes",
    ):
        values, valid = arrays.integers(name)
        columns[name] = pa.array(values, mask=~valid)
    for name in _TEXT_FIELDS.values():
        columns[name] = arrays.spans(name).cast(pa.string())
    columns["file_format"] = pc.utf8_upper(columns["file_format"])
    return columns


def _inherited(manifest: ManifestFile, arrays: _Arrays) -> dict[str, pa.Array]:
    """The columns that an entry may leave to its manifest (Iceberg specification, "Sequence Number Inheritance")."""
    status, _ = arrays.integers("status")
    inherits = (status == ADDED) | (manifest.sequence_number == 0)
    columns: dict[str, pa.Array] = {}
    for name in ("sequence_number", "file_sequence_number"):
        values, valid = arrays.integers(name)
        filled = np.where(valid, values, manifest.sequence_number)
        columns[name] = pa.array(filled, mask=~(valid | inherits))
    values, valid = arrays.integers("snapshot_id")
    columns["snapshot_id"] = pa.array(np.where(valid, values, manifest.added_snapshot_id))
    columns["first_row_id"] = _first_row_ids(manifest, arrays, status)
    return columns


def _first_row_ids(manifest: ManifestFile, arrays: _Arrays, status: Ints) -> pa.Array:
    if manifest.first_row_id is None:
        return pa.nulls(arrays.rows, pa.int64())
    values, valid = arrays.integers("first_row_id")
    records, _ = arrays.integers("record_count")
    assigned = ~valid & (status != DELETED)
    given = np.where(assigned, records, 0)
    following = manifest.first_row_id + np.cumsum(given) - given
    return pa.array(np.where(valid, values, following), mask=~(valid | assigned))


def _partition_column(arrays: _Arrays) -> pa.Array:
    fields = [_partition_field(arrays, *item) for item in arrays.slots.partition]
    count = len(fields)
    offsets = pa.array(np.arange(arrays.rows + 1, dtype=np.int32) * count)
    if not fields:
        return pa.ListArray.from_arrays(offsets, pa.array([], pa.binary()))
    interleaved = (np.arange(count)[None, :] * arrays.rows + np.arange(arrays.rows)[:, None]).ravel()
    return pa.ListArray.from_arrays(offsets, pa.concat_arrays(fields).take(pa.array(interleaved)))


def _partition_field(arrays: _Arrays, kind: str, name: str, encoding: str) -> pa.Array:
    if kind == "span":
        return arrays.decimals(name) if encoding == "decimal" else arrays.spans(name)
    values, valid = arrays.integers(name)
    width = np.dtype(encoding).itemsize
    raw = pa.py_buffer(values.astype(encoding).tobytes())
    fixed = pa.Array.from_buffers(pa.binary(width), arrays.rows, [pa.array(valid).buffers()[1], raw])
    return fixed.cast(pa.binary())
