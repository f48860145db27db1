"""Reads Iceberg's Avro files (manifest lists and manifests) as the raw values that were written.

fastavro reads the header and the records; logical types are left out of the schema, so that a date stays its day
number and a decimal its bytes: values outside Python's ranges, and odd ones by other writers, are kept as they are.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import fastavro

from planning_health.errors import NotMeasurableError
from planning_health.metadata.avro_blocks import blocks_from, decompressed

AvroSchema = dict[str, Any]

DAMAGE: Final = (KeyError, StopIteration, EOFError, ValueError, IndexError, TypeError, OverflowError, MemoryError)
"""What decoding damaged bytes can raise; ``UnicodeDecodeError`` is a ``ValueError``."""

METRIC_MAPS: Final = {
    108: "column_size",
    109: "value_count",
    110: "null_value_count",
    137: "nan_value_count",
    125: "lower_bound",
    128: "upper_bound",
}
"""Field id of each metric map in a data file → its statistic (Iceberg specification, "Data File Fields")."""


@dataclass(frozen=True)
class AvroFile:
    """A whole Avro file in memory.

    Attributes:
        schema: the writer's schema as it stands in the header, field ids and logical types included.
        codec: the compression codec's name.
        blocks: number of records and the decompressed bytes of each block.
        beginning: only the first records were asked for, so that the last block may hold more than it counts.
    """

    schema: AvroSchema
    codec: str
    blocks: tuple[tuple[int, bytes], ...]
    beginning: bool = False

    @property
    def uncompressed_bytes(self) -> int:
        """Bytes of all records before compression."""
        return sum(len(content) for _, content in self.blocks)

    def records(self) -> Iterator[dict[str, Any]]:
        """All records in physical order, values as they are on the wire."""
        plain = fastavro.parse_schema(without_logical_types(self.schema))
        if not _has_plain_fixed(self.schema):
            for count, content in self.blocks:
                yield from _decoded(count, io.BytesIO(content), plain)
            return
        prefixed = fastavro.parse_schema(without_logical_types(fixed_as_bytes(self.schema)))
        for count, content in self.blocks:
            yield from _whole_block(count, content, prefixed) or _decoded(count, io.BytesIO(content), plain)


@dataclass(frozen=True)
class AvroHeader:
    """What stands before an Avro file's first block: the schema as it is written, the codec, and how long that is."""

    schema: str
    codec: str
    length: int


def read_header(content: bytes) -> AvroHeader:
    """The header of an Avro file.

    Raises:
        Exception: one of many kinds by fastavro, when there is none.
    """
    stream = io.BytesIO(content)
    reader = fastavro.block_reader(stream)
    return AvroHeader(reader.metadata["avro.schema"], str(reader.codec), stream.tell())


def read_avro(path: str, content: bytes, records: int | None = None) -> AvroFile:
    """Opens an Avro file from its bytes.

    Args:
        path: named in errors.
        content: the file's bytes.
        records: open only this many records from the file's beginning; the blocks behind them are not decompressed.

    Raises:
        NotMeasurableError: naming the file, when it is not an Avro file or ends too early.
    """
    try:
        header = read_header(content)
        blocks = tuple(_blocks(content, header, records))
        return AvroFile(json.loads(header.schema), header.codec, blocks, records is not None)
    except Exception as error:  # fastavro and PyArrow raise many kinds on damaged bytes
        raise NotMeasurableError(f"{path} is not a readable Avro file ({type(error).__name__}: {error})") from error


def _decoded(count: int, stream: io.BytesIO, schema: Any) -> Iterator[dict[str, Any]]:
    for _ in range(count):
        record = fastavro.schemaless_reader(stream, schema, None)
        yield record


def _whole_block(count: int, content: bytes, schema: Any) -> list[dict[str, Any]] | None:
    """A block's records, or ``None`` when this schema does not read it to its exact end."""
    stream = io.BytesIO(content)
    try:
        records = list(_decoded(count, stream, schema))
    except Exception:  # fastavro raises many kinds when the bytes are others than it expects
        return None
    return records if stream.tell() == len(content) else None


def _has_plain_fixed(schema: Any) -> bool:
    if isinstance(schema, dict):
        if schema.get("type") == "fixed":
            return "logicalType" not in schema
        return any(_has_plain_fixed(value) for value in schema.values())
    return isinstance(schema, list) and any(_has_plain_fixed(item) for item in schema)


def fixed_as_bytes(schema: Any) -> Any:
    """The schema as Iceberg Java writes it: values of type ``fixed`` with a length before them, like ``bytes``.

    ``FixedByteBufferWriter`` and ``InternalReader`` of Iceberg Java agree on that, against Avro's specification; other
    writers follow the specification.
    """
    if isinstance(schema, dict):
        if schema.get("type") == "fixed" and "logicalType" not in schema:
            return "bytes"
        return {key: fixed_as_bytes(value) for key, value in schema.items()}
    if isinstance(schema, list):
        return [fixed_as_bytes(item) for item in schema]
    return schema


def _blocks(content: bytes, header: AvroHeader, records: int | None) -> Iterator[tuple[int, bytes]]:
    """The blocks of the first ``records`` records; the last block counts only those that are wanted."""
    left = records
    for count, body in blocks_from(content, header.length):
        yield count if left is None else min(left, count), decompressed(header.codec, body)
        if left is not None:
            left -= count
            if left <= 0:
                return


def without_logical_types(schema: Any) -> Any:
    """A schema whose values are read and written as they are on the wire."""
    if isinstance(schema, dict):
        return {key: without_logical_types(value) for key, value in schema.items() if key != "logicalType"}
    if isinstance(schema, list):
        return [without_logical_types(item) for item in schema]
    return schema


def names_by_field_id(record_schema: AvroSchema) -> dict[int, str]:
    """Iceberg field id → Avro field name of one record's own fields."""
    return {field["field-id"]: field["name"] for field in record_schema["fields"] if "field-id" in field}


def non_null(schema: Any) -> Any:
    """The other branch of a union with null; any other schema as it is."""
    if isinstance(schema, list):
        return next((branch for branch in schema if branch != "null"), "null")
    return schema


def field_schema(record_schema: AvroSchema, name: str) -> Any:
    """The schema of a record's field, without its null branch."""
    return next(non_null(field["type"]) for field in record_schema["fields"] if field["name"] == name)
