"""Encodes manifest entries again, as Iceberg's writer would: how large a manifest with other entries becomes.

Adding up the lengths of what an entry holds says little of a compressed file: entries repeat each other, and the order
they stand in decides how much. So some of a snapshot's real entries are read, changed, and encoded again.
"""

from __future__ import annotations

import io
import zlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import fastavro
import pyarrow as pa
import pyarrow.compute as pc

from planning_health.errors import NotMeasurableError
from planning_health.metadata.avro_reader import (
    AvroSchema,
    field_schema,
    names_by_field_id,
    non_null,
    read_avro,
    without_logical_types,
)
from planning_health.metadata.model import DATA, PlanningMetadata

SAMPLED_MANIFESTS: Final = 12
SAMPLED_ENTRIES: Final = 400
"""Entries read from the beginning of each sampled manifest."""

_BLOCK_BYTES: Final = 64_000
"""From how many bytes on Avro's Java writer ends a block (``DataFileConstants.DEFAULT_SYNC_INTERVAL``)."""
_SYNC_MARKER_BYTES: Final = 16
_DEFLATE_LEVEL: Final = 9
"""Iceberg's ``Avro.GZIP_COMPRESSION_LEVEL_DEFAULT``."""

STATISTICS_MAPS: Final[Mapping[int, str]] = {
    108: "column_sizes",
    109: "value_counts",
    110: "null_value_counts",
    137: "nan_value_counts",
    125: "lower_bounds",
    128: "upper_bounds",
}
"""Data-file field id of each metric map → its name (Iceberg specification, "Data File Fields")."""

Entry = dict[str, Any]
Statistic = Callable[[str, int, Any], Any]
"""(name of the map, column's field id, value) → the value to keep, or ``None`` to drop it."""


@dataclass(frozen=True)
class EntrySample:
    """The first entries of one real manifest, and how to encode such entries.

    Attributes:
        ordinal: the manifest's place in the snapshot's manifest list.
        header_bytes: the manifest's bytes before its first block: schemas and properties, uncompressed.
        complete: whether these are all of its entries.
        entries: the raw Avro records.
    """

    ordinal: int
    header_bytes: int
    complete: bool
    schema: AvroSchema
    codec: str
    entries: tuple[Entry, ...]

    def encoded_bytes(self, entries: Iterable[Entry]) -> int:
        """The bytes that entries take in a manifest, block by block, without its header."""
        total, count, block = 0, 0, io.BytesIO()
        for entry in entries:
            fastavro.schemaless_writer(block, self._parsed, entry)
            count += 1
            if block.tell() >= _BLOCK_BYTES:
                total += self._block_bytes(count, block.getvalue())
                count, block = 0, io.BytesIO()
        return total + (self._block_bytes(count, block.getvalue()) if count else 0)

    def with_statistics(self, keep: Statistic) -> list[Entry]:
        """The entries with other column statistics: each is kept, replaced or dropped."""
        file_name, maps = self._maps
        changed = []
        for entry in self.entries:
            file = dict(entry[file_name])
            for name, (statistic, key, value) in maps.items():
                file[name] = file[name] and [
                    {key: item[key], value: kept}
                    for item in file[name]
                    if (kept := keep(statistic, item[key], item[value])) is not None
                ]
            changed.append(entry | {file_name: file})
        return changed

    def _block_bytes(self, count: int, content: bytes) -> int:
        body = len(_compressed(self.codec, content))
        return _varint_bytes(count) + _varint_bytes(body) + body + _SYNC_MARKER_BYTES

    @cached_property
    def _parsed(self) -> Any:
        return fastavro.parse_schema(without_logical_types(self.schema))

    @cached_property
    def _maps(self) -> tuple[str, dict[str, tuple[str, str, str]]]:
        """The name of an entry's file, and of each of its metric maps (what it is, its key, its value)."""
        file_name = names_by_field_id(self.schema)[2]
        file = field_schema(self.schema, file_name)
        names = names_by_field_id(file)
        maps = {}
        for field_id, statistic in STATISTICS_MAPS.items():
            if field_id in names:
                key, value = non_null(field_schema(file, names[field_id])["items"])["fields"]
                maps[names[field_id]] = statistic, key["name"], value["name"]
        return file_name, maps


def sample_entries(metadata: PlanningMetadata, read: Callable[[str], bytes]) -> list[EntrySample]:
    """Reads the first entries of some data manifests, evenly chosen from the snapshot's manifest list.

    Args:
        metadata: the recorded snapshot.
        read: reads a whole file.

    Raises:
        NotMeasurableError: when a manifest cannot be read (any more).
    """
    data = metadata.manifests.filter(pc.equal(metadata.manifests["content"], DATA)).select(["ordinal", "path"])
    rows = data.to_pylist()
    step = max(1, -(-len(rows) // SAMPLED_MANIFESTS))
    return [_sample(row["ordinal"], row["path"], read(row["path"])) for row in rows[::step]]


def _sample(ordinal: int, path: str, content: bytes) -> EntrySample:
    avro = read_avro(path, content, SAMPLED_ENTRIES)
    try:
        header, records = _header(content)
        entries = tuple(avro.records())
    except Exception as error:  # fastavro raises many kinds on damaged bytes
        raise NotMeasurableError(f"{path} cannot be decoded ({type(error).__name__}: {error})") from error
    return EntrySample(ordinal, header, len(entries) >= records, avro.schema, avro.codec, entries)


def _header(content: bytes) -> tuple[int, int]:
    """The bytes before an Avro file's first block, and the number of records in all blocks."""
    blocks = [(block.offset, block.num_records) for block in fastavro.block_reader(io.BytesIO(content))]
    return (blocks[0][0] if blocks else len(content)), sum(count for _, count in blocks)


def _compressed(codec: str, content: bytes) -> bytes:
    if codec == "deflate":
        compressor = zlib.compressobj(_DEFLATE_LEVEL, zlib.DEFLATED, -zlib.MAX_WBITS)
        return compressor.compress(content) + compressor.flush()
    names = {"zstandard": "zstd", "snappy": "snappy"}
    return bytes(pa.compress(content, names[codec], asbytes=True)) if codec in names else content


def _varint_bytes(value: int) -> int:
    return max(1, ((value << 1).bit_length() + 6) // 7)
