"""Snapshots compared over their history: each difference has a commit that made it, or it is found and named."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from tests.maintenance.pictures import picture, table_metadata, with_files

from planning_health.maintenance.history import Commit, commits_between, compare_history
from planning_health.maintenance.prediction import predict_rewrite_manifests
from planning_health.maintenance.verification import Check
from planning_health.metadata import PlanningMetadata

DAYS_OF_FILES = [[[day] for day in range(6)] for _ in range(3)]
TRIM = Commit(50, "replace", spec_id=0, trims=True)
REWRITE = Commit(51, "replace", spec_id=0)


def with_statistics(metadata: PlanningMetadata, **columns: Any) -> PlanningMetadata:
    """The same statistics for all data files: ``lower_3`` is the lower bound of field 3."""
    files = metadata.data_files
    for key, value in columns.items():
        name = f"{key[:-2]}.{key[-1]}"
        position, field = files.schema.get_field_index(name), files.schema.field(name)
        files = files.set_column(position, field, pa.array([value] * len(files), field.type))
    return replace(metadata, data_files=files)


FULL = {
    "value_count_3": 5,
    "null_value_count_3": 0,
    "lower_bound_3": b"abcdef",
    "upper_bound_3": b"xyzxyz",
}
BEFORE = with_statistics(picture(DAYS_OF_FILES), **FULL)


def rewritten(metadata: PlanningMetadata = BEFORE) -> PlanningMetadata:
    return predict_rewrite_manifests(metadata, 0, 8 * 1024 * 1024).metadata


def checks(
    before: PlanningMetadata, after: PlanningMetadata, commits: Sequence[Commit], removed: Sequence[str] = ()
) -> dict[str, Check]:
    """The checks by name; the last commit removed these data files."""
    gone = {(path, 0, None) for path in removed}
    report = compare_history(
        before, after, commits, lambda snapshot: gone if snapshot == commits[-1].snapshot_id else set()
    )
    return {check.name: check for check in report.checks}


def failed(*arguments: Any) -> list[str]:
    return [name for name, check in checks(*arguments).items() if not check.success]


def test_a_rewrite_of_manifests_passes() -> None:
    assert failed(BEFORE, rewritten(), [REWRITE]) == []


@pytest.mark.parametrize(
    "left",
    [
        dict.fromkeys(FULL),
        {"lower_bound_3": None, "upper_bound_3": None},
        {"lower_bound_3": b"abc", "upper_bound_3": b"xz"},
        {"upper_bound_3": None},
    ],
)
def test_trims_may_take_statistics_or_shorten_bounds(left: dict[str, Any]) -> None:
    after = with_statistics(rewritten(), **left)
    assert failed(BEFORE, after, [REWRITE, TRIM]) == []
    assert failed(BEFORE, after, [REWRITE]) == ["attributes of data files changed"]
    elsewhere = Commit(50, "replace", spec_id=7, trims=True)
    assert failed(BEFORE, after, [elsewhere]) == ["attributes of data files changed"]


@pytest.mark.parametrize(
    ("wrong", "name"),
    [
        ({"null_value_count_3": 1}, "statistics that are no trimmed ones"),
        ({"lower_bound_3": b"abd"}, "statistics that are no trimmed ones"),
        ({"lower_bound_3": b"abcdefg"}, "statistics that are no trimmed ones"),
        ({"upper_bound_3": b"xyz"}, "statistics that are no trimmed ones"),
        ({"null_value_count_3": None}, "counts that were lost while bounds stayed"),
    ],
)
def test_what_no_trim_does_to_statistics_is_found(wrong: dict[str, Any], name: str) -> None:
    assert failed(BEFORE, with_statistics(rewritten(), **wrong), [TRIM]) == [name]


def test_statistics_that_were_not_there_before_are_found() -> None:
    bare = with_statistics(BEFORE, **dict.fromkeys(FULL))
    assert failed(bare, BEFORE, [TRIM]) == ["statistics that are no trimmed ones"]


@pytest.mark.parametrize("column", ["sequence_number", "record_count", "file_size_in_bytes"])
def test_attributes_of_files_change_by_no_commit(column: str) -> None:
    names = failed(BEFORE, with_files(rewritten(), column, 4, 99), [TRIM])
    assert names[:1] == ["rows in data files"] if column == "record_count" else ["attributes of data files changed"]
    assert "attributes of data files changed" in names


def grown(snapshot_id: int = 60) -> PlanningMetadata:
    """Two more files, which a later snapshot added."""
    more = picture([*DAYS_OF_FILES, [[7], [8]]])
    files = more.data_files
    ids = [snapshot_id if ordinal == 3 else 11 for ordinal in files["manifest_ordinal"].to_pylist()]
    position = files.schema.get_field_index("snapshot_id")
    field = files.schema.field(position)
    return replace(more, data_files=files.set_column(position, field, pa.array(ids, field.type)))


def test_added_files_are_told_with_their_commit_and_no_difference() -> None:
    found = checks(picture(DAYS_OF_FILES), grown(), [TRIM, Commit(60, "append")])
    assert all(check.success for check in found.values())
    assert found["data files of append 60"].observed == "2 added (10 rows)"


def test_files_that_no_commit_added_are_found() -> None:
    found = checks(picture(DAYS_OF_FILES), grown(59), [Commit(60, "append")])
    assert found["data files added by no commit"].observed == "2 (file:/lake/f3-0.parquet, file:/lake/f3-1.parquet)"
    assert not found["data files added by no commit"].success


@pytest.mark.parametrize(
    ("commit", "expected"),
    [
        (Commit(60, "delete"), "no data file added"),
        (Commit(60, "replace", spec_id=0, trims=True), "no file added or removed"),
        (Commit(60, "replace", spec_id=0), "no file added or removed"),
        (Commit(60, "overwrite"), None),
        (Commit(60, "replace"), None),
    ],
)
def test_a_commit_that_adds_what_its_kind_does_not_add_is_found(commit: Commit, expected: str | None) -> None:
    check = checks(picture(DAYS_OF_FILES), grown(), [commit])[f"data files of {commit}"]
    assert (check.success, check.expected) == (expected is None, expected or "2 added (10 rows)")


def test_removed_files_are_told_with_their_commit_and_others_are_lost() -> None:
    commits = [TRIM, Commit(60, "delete")]
    paths = ["file:/lake/f3-0.parquet", "file:/lake/f3-1.parquet"]
    everything, later = grown(11), picture(DAYS_OF_FILES)
    found = checks(everything, later, commits, paths)
    assert all(check.success for check in found.values())
    assert found["data files of delete 60"].observed == "2 removed (10 rows)"
    assert failed(everything, later, commits, paths[:1]) == ["data files lost without a commit that removed them"]
    assert failed(everything, later, [Commit(60, "append")], paths) == ["data files of append 60"]


def test_a_path_that_was_removed_and_added_anew_is_another_file() -> None:
    commits = [Commit(60, "overwrite")]
    changed = with_files(BEFORE, "snapshot_id", 0, 60)
    assert failed(BEFORE, changed, commits, ["file:/lake/f0-0.parquet"]) == []
    assert failed(BEFORE, changed, commits) == ["data files lost without a commit that removed them"]


def test_a_file_that_is_listed_twice_is_found() -> None:
    doubled = replace(BEFORE, data_files=pa.concat_tables([BEFORE.data_files, BEFORE.data_files.slice(0, 1)]))
    assert "data files listed once" in failed(BEFORE, doubled, [REWRITE])


def test_commits_are_those_up_to_the_ancestor_and_are_ours_by_their_summary() -> None:
    document = table_metadata().model_dump(by_alias=True, mode="json")
    first = document["snapshots"][0]
    summaries = [
        {"operation": "append"},
        {"operation": "replace", "planning-health.spec-id": "0", "planning-health.action": "trim_statistics"},
        {"operation": "replace", "planning-health.spec-id": "1"},
        {"operation": "append", "planning-health.spec-id": "1", "planning-health.action": "trim_statistics"},
    ]
    document["snapshots"] += [
        first | {"snapshot-id": 12 + number, "parent-snapshot-id": 11 + number, "summary": summary}
        for number, summary in enumerate(summaries)
    ]
    metadata = type(table_metadata()).model_validate(document)
    found = commits_between(metadata, 11, 15)
    assert found == [
        Commit(12, "append"),
        Commit(13, "replace", 0, True),
        Commit(14, "replace", 1),
        Commit(15, "append"),
    ]
    assert list(map(str, found)) == ["append 12", "trim 13", "rewrite of manifests 14", "append 15"]
    assert commits_between(metadata, 13, 13) == []
    assert commits_between(metadata, 15, 11) is None
    assert commits_between(metadata, 99, 15) is None
