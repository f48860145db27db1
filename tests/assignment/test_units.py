"""What the units of a scan are, how they are counted, limited, ordered and split."""

from __future__ import annotations

import pytest

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
