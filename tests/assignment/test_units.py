"""What the units of a scan are, how they are counted, limited, ordered and split."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planning_health.assignment import PLANNING_MAX_FILES, PlanningLimitError, UnitTable, collect_units, planned_work
from planning_health.errors import InputError


def test_the_planning_limit_is_100_000_files_by_default() -> None:
    assert PLANNING_MAX_FILES == 100_000


def test_exactly_the_limit_passes_and_one_more_fails_naming_the_limit() -> None:
    files = [(f"f{i}", 1, 1) for i in range(4)]
    assert len(collect_units(files[:3], planning_max_files=3)) == 3
    with pytest.raises(PlanningLimitError, match="planning_max_files=3 "):
        collect_units(files, planning_max_files=3)
    with pytest.raises(PlanningLimitError, match="planning_max_files=3 "):
        UnitTable.from_arrays([path for path, _, _ in files], [1] * 4, planning_max_files=3)


def test_collection_stops_at_the_first_file_beyond_the_limit() -> None:
    seen = []

    def stream():
        for i in range(10):
            seen.append(i)
            yield f"f{i}", 1, None

    with pytest.raises(PlanningLimitError):
        collect_units(stream(), planning_max_files=2)
    assert seen == [0, 1, 2]


def test_columns_of_different_lengths_are_refused() -> None:
    with pytest.raises(InputError, match="equal length"):
        UnitTable.from_arrays(["a", "b"], [1])


def test_an_empty_plan_has_exactly_no_rows() -> None:
    work = planned_work(collect_units([]), has_predicate=True, has_delete_files=True)
    assert (work.files, work.bytes, work.rows, work.exact) == (0, 0, 0, True)


@pytest.mark.parametrize(
    ("predicate", "deletes", "exact"),
    [(False, False, True), (True, False, False), (False, True, False), (True, True, False)],
)
def test_a_predicate_or_a_delete_file_makes_counts_estimates(predicate: bool, deletes: bool, exact: bool) -> None:
    work = planned_work(collect_units([("a", 5, 7)]), has_predicate=predicate, has_delete_files=deletes)
    assert (work.files, work.bytes, work.rows, work.exact) == (1, 5, 7, exact)


def test_rows_are_absent_when_one_count_is_missing() -> None:
    work = planned_work(collect_units([("a", 5, 7), ("b", 5, None)]), has_predicate=False, has_delete_files=False)
    assert work.rows is None


def test_planned_bytes_saturate_at_the_largest_unsigned_64_bit_number() -> None:
    units = collect_units([("a", 2**64 - 1, 1), ("b", 2**64 - 1, 1)])
    assert planned_work(units, has_predicate=False, has_delete_files=False).bytes == 2**64 - 1


def test_units_are_ordered_by_utf8_path_start_length_then_discovery() -> None:
    paths = ["b", "a", "a", "\U0001f600", "\uff00", "a", "a"]
    units = UnitTable.from_arrays(paths, [1, 9, 5, 1, 1, 5, 1], starts=[0, 0, 0, 0, 0, 0, 7])
    assert units.stable_order().tolist() == [2, 5, 1, 6, 0, 4, 3]


def test_files_are_split_at_the_target_when_they_have_no_split_offsets() -> None:
    parts = collect_units([("a", 25, 3), ("b", 10, 1), ("empty", 0, 0)]).split(10)
    assert parts.paths.to_pylist() == ["a", "a", "a", "b", "empty"]
    assert parts.starts.tolist() == [0, 10, 20, 0, 0]
    assert parts.lengths.tolist() == [10, 10, 5, 10, 0]
    assert parts.record_counts.null_count == 5


def test_files_are_split_at_their_offsets_when_they_have_them() -> None:
    units = collect_units([("a", 25, 3), ("b", 25, 3)])
    parts = units.split(10, pa.array([[4, 12], None]))
    assert list(zip(parts.starts.tolist(), parts.lengths.tolist(), strict=True)) == [
        (0, 4),
        (4, 8),
        (12, 13),
        (0, 10),
        (10, 10),
        (20, 5),
    ]


def test_a_split_target_below_one_byte_is_refused() -> None:
    with pytest.raises(InputError, match="split target 0"):
        collect_units([("a", 1, 1)]).split(0)


@given(st.lists(st.integers(0, 1000), max_size=20), st.integers(1, 300))
def test_splitting_keeps_every_byte_of_every_file_once(lengths: list[int], target: int) -> None:
    units = collect_units([(f"f{i}", length, 1) for i, length in enumerate(lengths)])
    parts = units.split(target)
    covered: dict[str, int] = {}
    for path, start, length in zip(parts.paths.to_pylist(), parts.starts.tolist(), parts.lengths.tolist(), strict=True):
        assert start == covered.get(path, 0)
        assert length <= target
        covered[path] = start + length
    assert covered == {f"f{i}": length for i, length in enumerate(lengths)}
