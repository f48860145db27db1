"""Reads Iceberg's Avro files (manifest lists and manifests) as the raw values that were written.

fastavro reads the container and the records; logical types are left out of the schema, so that a date stays its day
number and a decimal its bytes: values outside Python's ranges, and odd ones by other writers, are kept as they are.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import fastavro

from planning_health.errors import NotMeasurableError

AvroSchema = dict[str, Any]


@dataclass(frozen=True)
class AvroFile:
    """A whole Avro file in memory.

    Attributes:
        schema: the writer's schema as it stands in the header, field ids and logical types included.
        codec: the compression codec's name.
        blocks: number of records and the decompressed bytes of each block.
    """

    schema: AvroSchema
    codec: str
    blocks: tuple[tuple[int, bytes], ...]

    @property
    def uncompressed_bytes(self) -> int:
        """Bytes of all records before compression."""
        return sum(len(content) for _, content in self.blocks)

    def records(self) -> Iterator[dict[str, Any]]:
        """All records in physical order, values as they are on the wire."""
        plain = fastavro.parse_schema(_without_logical_types(self.schema))
        for count, content in self.blocks:
            stream = io.BytesIO(content)
            for _ in range(count):
                record = fastavro.schemaless_reader(stream, plain, None)
                yield record


def read_avro(path: str, content: bytes) -> AvroFile:
    """Opens an Avro file from its bytes.

    Raises:
        NotMeasurableError: naming the file, when it is not an Avro file or ends too early.
    """
    try:
        reader = fastavro.block_reader(io.BytesIO(content))
        blocks = tuple((block.num_records, block.bytes_.getvalue()) for block in reader)
        schema = json.loads(reader.metadata["avro.schema"])
        return AvroFile(schema, str(reader.codec), blocks)
    except Exception as error:  # fastavro raises many kinds on damaged bytes
        raise NotMeasurableError(f"{path} is not a readable Avro file ({type(error).__name__}: {error})") from error


def _without_logical_types(schema: Any) -> Any:
    if isinstance(schema, dict):
        return {key: _without_logical_types(value) for key, value in schema.items() if key != "logicalType"}
    if isinstance(schema, list):
        return [_without_logical_types(item) for item in schema]
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
