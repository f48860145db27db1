"""Manifest lists of every format version, and what a list may leave out."""

from __future__ import annotations

import io
from typing import Any

import fastavro
import pytest

from planning_health.errors import NotMeasurableError
from planning_health.metadata.manifest_list import ManifestFile, read_manifest_list

FIELDS = {  # name → field id, type, first format version with it (Iceberg specification, "Manifest Lists")
    "manifest_path": (500, "string", 1),
    "manifest_length": (501, "long", 1),
    "partition_spec_id": (502, "int", 1),
    "content": (517, "int", 2),
    "sequence_number": (515, "long", 2),
    "min_sequence_number": (516, "long", 2),
    "added_snapshot_id": (503, "long", 1),
    "added_files_count": (504, ["null", "int"], 1),
    "existing_files_count": (505, ["null", "int"], 1),
    "deleted_files_count": (506, ["null", "int"], 1),
    "added_rows_count": (512, ["null", "long"], 1),
    "existing_rows_count": (513, ["null", "long"], 1),
    "deleted_rows_count": (514, ["null", "long"], 1),
    "partitions": (507, None, 1),
    "key_metadata": (519, ["null", "bytes"], 1),
    "first_row_id": (520, ["null", "long"], 3),
}
SUMMARY = {
    "type": "record",
    "name": "r508",
    "fields": [
        {"name": "contains_null", "type": "boolean", "field-id": 509},
        {"name": "contains_nan", "type": ["null", "boolean"], "field-id": 518},
        {"name": "lower_bound", "type": ["null", "bytes"], "field-id": 510},
        {"name": "upper_bound", "type": ["null", "bytes"], "field-id": 511},
    ],
}
ROW: dict[str, Any] = {
    "manifest_path": "s3://lake/m1.avro",
    "manifest_length": 7001,
    "partition_spec_id": 2,
    "content": 1,
    "sequence_number": 9,
    "min_sequence_number": 4,
    "added_snapshot_id": 77,
    "added_files_count": 1,
    "existing_files_count": 2,
    "deleted_files_count": 3,
    "added_rows_count": 10,
    "existing_rows_count": 20,
    "deleted_rows_count": 30,
    "partitions": [
        {"contains_null": True, "contains_nan": False, "lower_bound": b"\x01", "upper_bound": b"\x02"},
        {"contains_null": False, "contains_nan": None, "lower_bound": None, "upper_bound": None},
    ],
    "key_metadata": None,
    "first_row_id": 1000,
}


def written(version: int, *rows: dict[str, Any], rename: str = "") -> bytes:
    summaries = ["null", {"type": "array", "items": SUMMARY}]
    fields = [
        {"name": rename + name, "type": summaries if kind is None else kind, "field-id": field_id}
        for name, (field_id, kind, since) in FIELDS.items()
        if since <= version
    ]
    stream = io.BytesIO()
    schema = {"type": "record", "name": "manifest_file", "fields": fields}
    fastavro.writer(stream, schema, [{rename + name: value for name, value in row.items()} for row in rows])
    return stream.getvalue()


def read(content: bytes) -> list[ManifestFile]:
    return read_manifest_list("snap.avro", content)


@pytest.mark.parametrize("rename", ["", "x_"], ids=["as specified", "under other names"])
def test_all_that_a_list_says_is_read_by_field_id(rename: str) -> None:
    (manifest,) = read(written(3, ROW, rename=rename))
    same = {name: value for name, value in ROW.items() if not name.startswith("manifest_") and name != "key_metadata"}
    assert manifest.columns() == {"ordinal": 0, "path": "s3://lake/m1.avro", "length": 7001, **same}
    assert manifest.first_row_id == 1000


def test_a_list_of_version_1_holds_data_manifests_of_sequence_number_0() -> None:
    missing = {name: None for name in FIELDS if name.endswith("_count") or name == "partitions"}
    (manifest,) = read(written(1, ROW | missing))
    assert (manifest.content, manifest.sequence_number, manifest.min_sequence_number) == (0, 0, 0)
    assert set(manifest.counts.values()) == {None}, "a count that is not known is not 0"
    assert manifest.partitions is None, "absent summaries are not an empty list of them"


def test_manifests_keep_the_order_of_the_list() -> None:
    manifests = read(written(2, *(ROW | {"manifest_path": f"m{number}"} for number in range(3))))
    assert [(manifest.ordinal, manifest.path) for manifest in manifests] == [(0, "m0"), (1, "m1"), (2, "m2")]


def test_an_unpartitioned_manifest_has_summaries_of_no_field() -> None:
    (manifest,) = read(written(2, ROW | {"partitions": []}))
    assert manifest.partitions == []


def test_encrypted_manifests_are_not_measurable() -> None:
    with pytest.raises(NotMeasurableError, match=r"manifest s3://lake/m1\.avro is encrypted"):
        read(written(2, ROW | {"key_metadata": b"k"}))


@pytest.mark.parametrize("damage", [lambda content: b"", lambda content: b"garbage", lambda content: content[:-20]])
def test_a_damaged_list_is_named(damage: Any) -> None:
    with pytest.raises(NotMeasurableError, match=r"snap\.avro"):
        read(damage(written(2, ROW)))
