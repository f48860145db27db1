"""The two manifest decoders agree on anything that can be written, and survive anything that cannot be read."""

from __future__ import annotations

import io
import json
from typing import Any

import fastavro
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.metadata.avro_files import in_codec

from planning_health.errors import NotMeasurableError
from planning_health.metadata.avro_blocks import CODECS
from planning_health.metadata.manifest_list import ManifestFile
from planning_health.metadata.manifest_reader import DecodedManifest, decode_manifest

RECORDED = frozenset({1, 3, 200, 70000})
LONG = st.integers(-(2**63), 2**63 - 1)
COUNT = st.integers(0, 2**40)
FIELD_ID = st.sampled_from([1, 2, 3, 200, 70000, 2147483546, 2147483545])
PARTITION_TYPES: dict[str, tuple[Any, st.SearchStrategy[Any]]] = {
    "boolean": ("boolean", st.booleans()),
    "int": ("int", st.integers(-(2**31), 2**31 - 1)),
    "date": ({"type": "int", "logicalType": "date"}, st.integers(-(2**31), 2**31 - 1)),
    "long": ("long", LONG),
    "timestamp": ({"type": "long", "logicalType": "timestamp-micros"}, LONG),
    "float": ("float", st.floats(width=32)),
    "double": ("double", st.floats()),
    "string": ("string", st.text(max_size=8)),
    "bytes": ("bytes", st.binary(max_size=8)),
    "uuid": ({"type": "fixed", "size": 16, "name": "u", "logicalType": "uuid"}, st.binary(min_size=16, max_size=16)),
    "decimal": (
        {"type": "fixed", "size": 5, "name": "d", "logicalType": "decimal", "precision": 10, "scale": 2},
        st.integers(-(2**39), 2**39 - 1).map(lambda value: value.to_bytes(5, "big", signed=True)),
    ),
}


def optional(schema: Any) -> list[Any]:
    return ["null", schema]


def metric_map(key_id: int, value_type: str) -> list[Any]:
    item = {
        "type": "record",
        "name": f"k{key_id}_v{key_id + 1}",
        "fields": [
            {"name": "key", "type": "int", "field-id": key_id},
            {"name": "value", "type": value_type, "field-id": key_id + 1},
        ],
    }
    return optional({"type": "array", "items": item, "logicalType": "map"})


def manifest_schema(version: int, partition: list[str]) -> dict[str, Any]:
    def field(name: str, field_id: int, schema: Any) -> dict[str, Any]:
        return {"name": name, "type": schema, "field-id": field_id}

    parts = [
        {
            "name": f"p{position}",
            "type": optional(named(PARTITION_TYPES[kind][0], position)),
            "field-id": 1000 + position,
        }
        for position, kind in enumerate(partition)
    ]
    data_file = [
        *([field("content", 134, "int")] if version > 1 else []),
        field("file_path", 100, "string"),
        field("file_format", 101, "string"),
        field("partition", 102, {"type": "record", "name": "r102", "fields": parts}),
        field("record_count", 103, "long"),
        field("file_size_in_bytes", 104, "long"),
        *([field("block_size_in_bytes", 105, "long")] if version == 1 else []),
        field("column_sizes", 108, metric_map(117, "long")),
        field("value_counts", 109, metric_map(119, "long")),
        field("null_value_counts", 110, metric_map(121, "long")),
        field("nan_value_counts", 137, metric_map(138, "long")),
        field("lower_bounds", 125, metric_map(126, "bytes")),
        field("upper_bounds", 128, metric_map(129, "bytes")),
        field("key_metadata", 131, optional("bytes")),
        field("split_offsets", 132, optional({"type": "array", "items": "long"})),
        field("equality_ids", 135, optional({"type": "array", "items": "int"})),
        field("sort_order_id", 140, optional("int")),
        *([field("first_row_id", 142, optional("long"))] if version > 2 else []),
        *([field("referenced_data_file", 143, optional("string"))] if version > 1 else []),
    ]
    sequence = [field("sequence_number", 3, optional("long")), field("file_sequence_number", 4, optional("long"))]
    return {
        "type": "record",
        "name": "manifest_entry",
        "fields": [
            field("status", 0, "int"),
            field("snapshot_id", 1, optional("long")),
            *(sequence if version > 1 else []),
            field("data_file", 2, {"type": "record", "name": "r2", "fields": data_file}),
        ],
    }


def named(schema: Any, position: int) -> Any:
    return {**schema, "name": f"n{position}"} if isinstance(schema, dict) and "name" in schema else schema


@st.composite
def manifests(draw: st.DrawFn) -> tuple[ManifestFile, bytes]:
    version = draw(st.sampled_from([1, 2, 3]))
    partition = draw(st.lists(st.sampled_from(sorted(PARTITION_TYPES)), max_size=3))
    counts = st.none() | st.dictionaries(FIELD_ID, COUNT).map(items)
    bounds = st.none() | st.dictionaries(FIELD_ID, st.binary(max_size=20)).map(items)
    entry = st.fixed_dictionaries(
        {
            "status": st.sampled_from([0, 1, 2]),
            "snapshot_id": st.none() | LONG,
            "sequence_number": st.none() | LONG,
            "file_sequence_number": st.none() | LONG,
            "data_file": st.fixed_dictionaries(
                {
                    "content": st.sampled_from([0, 1, 2]),
                    "file_path": st.text(),
                    "file_format": st.sampled_from(["PARQUET", "parquet", "orc"]),
                    "partition": st.fixed_dictionaries(
                        {f"p{n}": st.none() | PARTITION_TYPES[kind][1] for n, kind in enumerate(partition)}
                    ),
                    "record_count": COUNT,
                    "file_size_in_bytes": COUNT,
                    "block_size_in_bytes": COUNT,
                    "column_sizes": counts,
                    "value_counts": counts,
                    "null_value_counts": counts,
                    "nan_value_counts": counts,
                    "lower_bounds": bounds,
                    "upper_bounds": bounds,
                    "key_metadata": st.none() | st.binary(max_size=4),
                    "split_offsets": st.none() | st.lists(LONG, max_size=4),
                    "equality_ids": st.none() | st.lists(st.integers(1, 9), max_size=3),
                    "sort_order_id": st.none() | st.integers(0, 5),
                    "first_row_id": st.none() | COUNT,
                    "referenced_data_file": st.none() | st.text(),
                }
            ),
        }
    )
    entries = draw(st.lists(entry, max_size=6))
    first_row_id = draw(st.none() | COUNT)
    manifest = ManifestFile(
        ordinal=draw(st.integers(0, 5)),
        path="s3://bucket/m.avro",
        length=1,
        partition_spec_id=draw(st.integers(0, 3)),
        content=draw(st.sampled_from([0, 1])),
        sequence_number=draw(st.integers(0, 9)),
        min_sequence_number=0,
        added_snapshot_id=draw(LONG),
        counts={"first_row_id": first_row_id},
        partitions=None,
    )
    stream = io.BytesIO()
    schema = without_logical_types(manifest_schema(version, partition))
    fastavro.writer(stream, schema, entries, sync_interval=200)
    content = stream.getvalue()
    if version:  # the header must carry the logical types, which the writer would apply to the values
        content = with_header_schema(content, schema, manifest_schema(version, partition))
    return manifest, in_codec(content, draw(st.sampled_from(CODECS)))


def items(values: dict[int, Any]) -> list[dict[str, Any]]:
    return [{"key": key, "value": value} for key, value in values.items()]


def without_logical_types(schema: Any) -> Any:
    if isinstance(schema, dict):
        return {key: without_logical_types(value) for key, value in schema.items() if key != "logicalType"}
    return [without_logical_types(item) for item in schema] if isinstance(schema, list) else schema


def with_header_schema(content: bytes, written: Any, wanted: Any) -> bytes:
    """Replaces the schema in an Avro header; what follows the header stays."""
    reader = fastavro.block_reader(io.BytesIO(content))
    header = io.BytesIO()
    header.write(b"Obj\x01")
    metadata = {"avro.schema": json.dumps(wanted).encode(), "avro.codec": str(reader.codec).encode()}
    fastavro.schemaless_writer(header, {"type": "map", "values": "bytes"}, metadata)
    sync = reader._header["sync"]
    header.write(sync)
    return header.getvalue() + content[content.index(sync) + 16 :]


def same(left: DecodedManifest, right: DecodedManifest) -> bool:
    return (
        left.files.equals(right.files)
        and +left.entries == +right.entries
        and +left.statistics_bytes == +right.statistics_bytes
        and left.equality_ids == right.equality_ids
        and left.uncompressed_bytes == right.uncompressed_bytes
    )


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(manifests())
def test_compiled_and_fastavro_decoders_give_the_same_columns(case: tuple[ManifestFile, bytes]) -> None:
    manifest, content = case
    with_fastavro = decode_manifest(manifest, content, RECORDED)
    compiled = decode_manifest(manifest, content, RECORDED, compiled=True)
    assert same(with_fastavro, compiled)


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(manifests(), st.data())
def test_damaged_bytes_give_the_one_error_or_rows_never_a_crash(
    case: tuple[ManifestFile, bytes], data: st.DataObject
) -> None:
    manifest, content = case
    position = data.draw(st.integers(0, len(content) - 1))
    damaged = bytearray(content)
    damaged[position] ^= data.draw(st.integers(1, 255))
    for compiled in (False, True):
        try:
            decoded = decode_manifest(manifest, bytes(damaged), RECORDED, compiled=compiled)
        except NotMeasurableError:
            continue
        assert decoded.files.num_rows == sum(decoded.entries.values())


def test_an_entry_inherits_what_it_leaves_out() -> None:
    schema = without_logical_types(manifest_schema(3, []))
    empty = dict.fromkeys(
        [
            "column_sizes",
            "value_counts",
            "null_value_counts",
            "nan_value_counts",
            "lower_bounds",
            "upper_bounds",
            "key_metadata",
            "split_offsets",
            "equality_ids",
            "sort_order_id",
            "first_row_id",
            "referenced_data_file",
        ]
    )
    file = {"content": 0, "file_path": "f", "file_format": "PARQUET", "partition": {}, **empty}
    entries = [
        {"status": status, "data_file": {**file, "record_count": 10, "file_size_in_bytes": 1}} for status in (1, 2, 1)
    ]
    stream = io.BytesIO()
    fastavro.writer(stream, schema, entries)
    manifest = ManifestFile(0, "m", 1, 0, 0, 7, 7, 42, {"first_row_id": 100}, None)
    for compiled in (False, True):
        files = decode_manifest(manifest, stream.getvalue(), frozenset(), compiled=compiled).files.to_pydict()
        assert files["snapshot_id"] == [42, 42, 42]
        assert files["sequence_number"] == [7, None, 7], "a DELETED entry without a number stays without one"
        assert files["first_row_id"] == [100, None, 110]


def test_columns_are_taken_by_field_id_not_by_name() -> None:
    schema = json.loads(json.dumps(without_logical_types(manifest_schema(1, []))).replace('"file_path"', '"filePath"'))
    stream = io.BytesIO()
    fastavro.writer(stream, schema, [])
    manifest = ManifestFile(0, "m", 1, 0, 0, 0, 0, 1, {"first_row_id": None}, None)
    assert decode_manifest(manifest, stream.getvalue(), frozenset()).files.num_rows == 0


@pytest.mark.parametrize("compiled", [False, True])
def test_a_manifest_without_entries_has_no_rows(compiled: bool) -> None:
    stream = io.BytesIO()
    fastavro.writer(stream, without_logical_types(manifest_schema(2, ["int"])), [])
    manifest = ManifestFile(0, "m", 1, 0, 0, 0, 0, 1, {"first_row_id": None}, None)
    assert decode_manifest(manifest, stream.getvalue(), RECORDED, compiled=compiled).files.num_rows == 0
