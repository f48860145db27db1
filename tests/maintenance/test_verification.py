"""Verification: a rewrite passes, and every other difference is found and named."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pytest
from tests.maintenance.pictures import picture, with_files, with_info

from planning_health.maintenance.prediction import predict_rewrite_manifests
from planning_health.maintenance.verification import compare_snapshots
from planning_health.metadata import PlanningMetadata

BEFORE = picture([[[day] for day in range(6)] for _ in range(3)])


def rewritten(metadata: PlanningMetadata = BEFORE) -> PlanningMetadata:
    return predict_rewrite_manifests(metadata, 0, 8 * 1024 * 1024).metadata


def failed(before: PlanningMetadata, after: PlanningMetadata) -> list[str]:
    return [check.name for check in compare_snapshots(before, after).checks if not check.success]


def test_a_rewrite_passes() -> None:
    report = compare_snapshots(BEFORE, rewritten())
    assert report.success
    assert report.failures() == ""
    assert report.as_json()["success"]


def test_dropped_deleted_entries_are_no_difference() -> None:
    before = picture([[[day] for day in range(6)] for _ in range(3)], deleted=2)
    assert failed(before, rewritten(before)) == []


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("sequence_number", 99),
        ("file_sequence_number", None),
        ("snapshot_id", 12),
        ("record_count", 4),
        ("partition", [b"\x09\x00\x00\x00"]),
        ("lower_bound.2", b"\x00\x00\x00\x00"),
        ("file_size_in_bytes", 1),
    ],
)
def test_any_changed_attribute_is_found(column: str, value: Any) -> None:
    report = compare_snapshots(BEFORE, with_files(rewritten(), column, 4, value))
    assert not report.success
    assert column in report.failures()


def test_a_lost_and_an_added_file_are_named() -> None:
    after = with_files(rewritten(), "file_path", 0, "file:/lake/other.parquet")
    report = compare_snapshots(BEFORE, after)
    assert "data files lost: 1 (file:/lake/f" in report.failures()
    assert "data files added: 1 (file:/lake/other.parquet)" in report.failures()


def test_a_doubled_entry_is_found() -> None:
    after = rewritten()
    doubled = replace(after, data_files=pa.concat_tables([after.data_files, after.data_files.slice(0, 1)]))
    assert "number of data files" in failed(BEFORE, doubled)


def test_row_ids_may_be_assigned_in_v3_and_never_change() -> None:
    v3 = picture([[[1], [2]], [[1], [2]]], version=3)
    assigned = with_files(rewritten(v3), "first_row_id", 0, 100)
    assert failed(v3, assigned) == []
    assert failed(assigned, with_files(rewritten(v3), "first_row_id", 0, 101)) == [
        "first row ids of data files changed"
    ]
    assert failed(assigned, rewritten(v3)) == ["first row ids of data files changed"]
    v2 = picture([[[1], [2]], [[1], [2]]])
    assert failed(v2, with_files(rewritten(v2), "first_row_id", 0, 100)) == ["first row ids of data files changed"]


@pytest.mark.parametrize(
    ("column", "value", "name"),
    [
        ("file_size", 1, "manifests of another size than listed"),
        ("existing_files_count", 3, "manifests with other counts than listed"),
        ("min_sequence_number", 9, "manifests whose minimum sequence number is too high"),
        ("statistics_bytes", [{"field_id": 1, "bytes": 1}], "statistics in data manifests (bytes before compression)"),
    ],
)
def test_manifests_that_are_not_what_the_list_says_are_found(column: str, value: Any, name: str) -> None:
    after = rewritten()
    field = after.manifests.schema.field(column)
    changed = after.manifests.set_column(
        after.manifests.schema.get_field_index(column), field, pa.array([value], field.type)
    )
    assert failed(BEFORE, replace(after, manifests=changed)) == [name]


def test_another_table_is_found() -> None:
    renamed = BEFORE.info.metadata.model_copy(update={"table_uuid": uuid4()})
    assert failed(BEFORE, with_info(rewritten(), metadata=renamed)) == ["the same table"]
