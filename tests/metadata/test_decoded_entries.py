"""Entries of a manifest that PyIceberg wrote are decoded to what was handed to it."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import pytest
from pyiceberg.io.pyarrow import PyArrowFileIO
from pyiceberg.manifest import DataFile, DataFileContent, FileFormat, ManifestEntry, ManifestEntryStatus, write_manifest
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import DayTransform, IdentityTransform
from pyiceberg.typedef import Record
from pyiceberg.types import DateType, IntegerType, NestedField, StringType

from planning_health.metadata.manifest_list import ManifestFile
from planning_health.metadata.manifest_reader import DecodedManifest, decode_manifest

SCHEMA = Schema(NestedField(1, "i", IntegerType()), NestedField(2, "s", StringType()), NestedField(3, "d", DateType()))
SPEC = PartitionSpec(
    PartitionField(3, 1000, DayTransform(), "d_day"), PartitionField(2, 1001, IdentityTransform(), "s"), spec_id=4
)


def file(path: str, partition: Record, **more: Any) -> DataFile:
    given = {
        "content": DataFileContent.DATA,
        "file_path": path,
        "file_format": FileFormat.PARQUET,
        "partition": partition,
        "record_count": 100,
        "file_size_in_bytes": 5000,
        "column_sizes": {1: 50, 2: 60},
        "value_counts": {1: 100, 2: 101},
        "null_value_counts": {1: 0, 2: 7},
        "nan_value_counts": {},
        "lower_bounds": {1: struct.pack("<i", -3), 2: b"a"},
        "upper_bounds": {1: struct.pack("<i", 9), 2: b"zz"},
        "key_metadata": None,
        "split_offsets": [4, 1000],
        "equality_ids": None,
        "sort_order_id": 2,
    }
    return DataFile.from_args(**(given | more))


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path: Path = tmp_path_factory.mktemp("manifest") / "m.avro"
    output = PyArrowFileIO().new_output(str(path))
    entries = [
        (ManifestEntryStatus.ADDED, None, file("f0", Record(19936, "x"))),
        (ManifestEntryStatus.EXISTING, 5, file("f1", Record(None, None), split_offsets=None, sort_order_id=None)),
        (ManifestEntryStatus.DELETED, 6, file("f2", Record(-1, "é"), lower_bounds={}, null_value_counts={1: 3})),
    ]
    with write_manifest(2, SPEC, SCHEMA, output, snapshot_id=42, avro_compression="deflate") as writer:
        for status, sequence, data_file in entries:
            writer.add_entry(
                ManifestEntry.from_args(
                    status=status,
                    snapshot_id=42 if sequence is None else 40,
                    sequence_number=sequence,
                    file_sequence_number=None if sequence is None else sequence - 1,
                    data_file=data_file,
                )
            )
    return path.read_bytes()


@pytest.fixture(params=[False, True], ids=["fastavro", "compiled"])
def decoded(request: pytest.FixtureRequest, written: bytes) -> DecodedManifest:
    manifest = ManifestFile(7, "m.avro", len(written), 4, 0, 11, 5, 42, {"first_row_id": None}, None)
    return decode_manifest(manifest, written, frozenset({1}), compiled=request.param)


def test_every_field_of_an_entry_is_where_it_belongs(decoded: DecodedManifest) -> None:
    columns = decoded.files.to_pydict()
    day = struct.Struct("<i").pack
    expected = {
        "manifest_ordinal": [7, 7, 7],
        "position": [0, 1, 2],
        "status": [1, 0, 2],
        "spec_id": [4, 4, 4],
        "snapshot_id": [42, 40, 40],
        "sequence_number": [11, 5, 6],
        "file_sequence_number": [11, 4, 5],
        "first_row_id": [None, None, None],
        "content": [0, 0, 0],
        "file_path": ["f0", "f1", "f2"],
        "file_format": ["PARQUET"] * 3,
        "record_count": [100, 100, 100],
        "file_size_in_bytes": [5000] * 3,
        "split_offsets": [[4, 1000], None, [4, 1000]],
        "sort_order_id": [2, None, 2],
        "equality_ids": [None] * 3,
        "partition": [[day(19936), b"x"], [None, None], [day(-1), "é".encode()]],
        "value_count.1": [100, 100, 100],
        "null_value_count.1": [0, 0, 3],
        "nan_value_count.1": [None] * 3,
        "lower_bound.1": [day(-3), day(-3), None],
        "upper_bound.1": [day(9)] * 3,
    }
    assert {name: columns[name] for name in expected} == expected
    assert "value_count.2" not in columns, "only recorded columns are kept"


def test_entries_and_the_bytes_of_each_columns_statistics_are_counted(decoded: DecodedManifest) -> None:
    counted = decoded.columns()
    assert [counted[f"entries_{kind}"] for kind in ("added", "existing", "deleted")] == [1, 1, 1]
    # a key takes a byte; as zigzag varints 50 and 60 take one, 100 and 101 two; bounds have their length before them
    full = {1: 2 + 3 + 2 + (2 + 4) * 2, 2: 2 + 3 + 2 + (2 + 1) + (2 + 2)}
    last = {1: full[1] - (2 + 4), 2: full[2] - 2 - (2 + 1)}
    assert counted["statistics_bytes"] == [
        {"field_id": field_id, "bytes": 2 * full[field_id] + last[field_id]} for field_id in (1, 2)
    ]
    assert (counted["codec"], decoded.equality_ids) == ("deflate", frozenset())
