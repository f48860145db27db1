"""Writes manifests of files that do not exist, with random statistics for every column.

All entries are encoded at once as columns of bytes: values are drawn so that each field takes the same number of bytes
in every entry. The header and the compression codec are those of an empty manifest that Iceberg wrote.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from typing import Any

import numpy as np

from planning_health.metadata.avro_blocks import varint

MICROS_A_DAY = 86_400_000_000
FIRST_DAY = 19_723  # 2024-01-01
DAYS = 730
LONG_DOMAIN = 10**15
DOUBLE_DOMAIN = 1e6
LETTERS = 26**4
BLOCK_BYTES = 64_000

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Column:
    """A column of the generated table; ``width`` is the largest part of the domain that one file covers."""

    field_id: int
    name: str
    kind: str
    width: float


def table_columns(count: int) -> list[Column]:
    """``ts``, which the table is partitioned by days of, and columns of four kinds in turn."""
    kinds = ("long", "double", "string", "timestamp")
    columns = [Column(1, "ts", "event time", 0.0)]
    for number in range(count - 1):
        kind = kinds[number % 4]
        columns.append(Column(number + 2, f"{kind[0]}{number // 4:02}", kind, 0.3 / 10 ** (number // 4 % 4)))
    return columns


@dataclass(frozen=True)
class Manifest:
    """A manifest file's bytes and what the manifest list says of it."""

    content: bytes
    entries: int
    records: int
    first_day: int
    last_day: int


def manifest(
    number: int, entries: int, of_manifests: int, columns: list[Column], empty: bytes, buckets: int = 0
) -> Manifest:
    """Make one manifest; its files belong to the days that appends in order of time would give it.

    Args:
        number: number of the manifest, from 0; the random values follow from it.
        entries: number of files.
        of_manifests: number of manifests of the table.
        columns: the table's columns; all have statistics.
        empty: a manifest without entries as Iceberg wrote it: it ends with its sync marker.
        buckets: how many buckets the second partition field has; without any there is one field, the day.
    """
    rng = np.random.default_rng(number)
    place = (number + np.arange(entries) / entries) / of_manifests
    late = np.rint(rng.normal(0, 2, entries)).astype(np.int64)
    days = FIRST_DAY + np.clip((place * DAYS).astype(np.int64) + late, 0, DAYS - 1)
    records = rng.integers(8_192, 1_000_000, entries)
    partition: list[bytes | Array] = [b"\2", varints(days)]
    if buckets:
        partition += [b"\2", varints(rng.integers(0, buckets, entries))]
    rows = _entries(rng, number, partition, days, records, columns)
    return Manifest(_container(rows, empty), entries, int(records.sum()), int(days.min()), int(days.max()))


def _entries(
    rng: np.random.Generator,
    number: int,
    partition: list[bytes | Array],
    days: Array,
    records: Array,
    columns: list[Column],
) -> Array:
    """Encode all entries in Avro, one row of bytes each, in the order of fields of a v2 manifest."""
    count = len(days)
    paths = np.array([f"/lake/bench/files/data/{number:05}-{index:07}.parquet".encode() for index in range(count)])
    second_split = rng.integers(1 << 26, 1 << 27, count)
    size = rng.integers(1 << 27, 3 << 27, count)
    doubles = [column for column in columns if column.kind == "double"]
    lower, upper = _bounds(rng, days, columns)
    null, one = b"\0", b"\2"
    parts = [
        varint(1) + null + null + null + varint(0),  # ADDED, snapshot and sequence numbers are inherited; data
        varint(paths.itemsize), paths.view(np.uint8).reshape(count, -1), varint(7) + b"PARQUET",
        *partition, varints(records), varints(size),
        *_map(columns, [varints(rng.integers(8_192, 1_000_000, count)) for _ in columns]),
        *_map(columns, [varints(records)] * len(columns)),
        *_map(columns, [varints(rng.integers(0, 64, count)) for _ in columns]),
        *_map(doubles, [varints(rng.integers(0, 64, count)) for _ in doubles]),
        *_map(columns, lower),
        *_map(columns, upper),
        null,  # key metadata
        one, varint(2), varint(4), varints(second_split), null,
        null,  # equality ids
        one + varint(0),  # sort order
        null,  # referenced data file
    ]  # fmt: skip
    return np.concatenate([_repeated(part, count) if isinstance(part, bytes) else part for part in parts], axis=1)


def _bounds(rng: np.random.Generator, days: Array, columns: list[Column]) -> tuple[list[Array], list[Array]]:
    lower, upper = [], []
    for column in columns:
        start = rng.random(len(days))
        end = np.minimum(start + column.width * rng.random(len(days)) ** 2, 1.0)
        if column.kind == "event time":
            start, end = start / 2, 0.5 + end / 2
        lower.append(_single_values(rng, column, start, days))
        upper.append(_single_values(rng, column, end, days))
    return lower, upper


def _single_values(rng: np.random.Generator, column: Column, share: Array, days: Array) -> Array:
    """Encode values at a share of the column's domain, with Avro's length in front."""
    if column.kind == "string":
        head = (share * (LETTERS - 1)).astype(np.int64)
        digits = [head // 26**power % 26 for power in (3, 2, 1, 0)]
        text = np.concatenate([np.stack(digits, axis=1), rng.integers(0, 26, (len(share), 12))], axis=1)
        return np.concatenate([_repeated(varint(16), len(share)), (text + ord("a")).astype(np.uint8)], axis=1)
    if column.kind == "double":
        values = share * DOUBLE_DOMAIN
    elif column.kind == "long":
        values = (share * LONG_DOMAIN).astype(np.int64)
    elif column.kind == "timestamp":
        values = ((FIRST_DAY + share * DAYS) * MICROS_A_DAY).astype(np.int64)
    else:
        values = days * MICROS_A_DAY + (share * (MICROS_A_DAY - 1)).astype(np.int64)
    raw = np.ascontiguousarray(values).view(np.uint8).reshape(-1, 8)
    return np.concatenate([_repeated(varint(8), len(share)), raw], axis=1)


def _map(columns: list[Column], values: list[Array]) -> list[bytes | Array]:
    """Encode one metric map: the union's branch, one block of keys and values, the end."""
    parts: list[bytes | Array] = [b"\2" + varint(len(columns))]
    for column, encoded in zip(columns, values, strict=True):
        parts += [varint(column.field_id), encoded]
    return [*parts, b"\0"]


def _container(rows: Array, empty: bytes) -> bytes:
    """Lay entries out as Avro blocks behind the header of an empty manifest; Iceberg's blocks are as large."""
    sync = empty[-16:]
    per_block = max(1, BLOCK_BYTES // rows.shape[1])
    out = [empty]
    for start in range(0, len(rows), per_block):
        block = rows[start : start + per_block]
        deflate = zlib.compressobj(1, wbits=-15)
        data = deflate.compress(block.tobytes()) + deflate.flush()
        out += [varint(len(block)), varint(len(data)), data, sync]
    return b"".join(out)


def varints(values: Array) -> Array:
    """Encode numbers of equal encoded length, one row of bytes each."""
    width = len(varint(int(values.max())))
    if len(varint(int(values.min()))) != width:
        raise ValueError(f"numbers of {width} bytes and of fewer")
    shifted = (values.astype(np.int64)[:, None] << 1) >> (7 * np.arange(width))
    more = np.where(np.arange(width) < width - 1, 0x80, 0)
    return (shifted & 0x7F | more).astype(np.uint8)


def _repeated(part: bytes, count: int) -> Array:
    return np.broadcast_to(np.frombuffer(part, dtype=np.uint8), (count, len(part)))
