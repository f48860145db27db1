"""Entry-range batches: what they cover, and what reading them costs."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planning_health.errors import InputError
from planning_health.plan_tasks import Range, RangePlan, entry_ranges

COUNTS = st.lists(st.integers(0, 80), max_size=12)


def covered(plan: RangePlan) -> list[tuple[int, int]]:
    return [(part.manifest, at) for batch in plan.batches for part in batch for at in range(part.start, part.end)]


def test_batches_span_manifests() -> None:
    plan = entry_ranges([60, 60, 60, 70], 100)
    assert plan.batches == (
        (Range(0, 0, 60), Range(1, 0, 40)),
        (Range(1, 40, 60), Range(2, 0, 60), Range(3, 0, 20)),
        (Range(3, 20, 70),),
    )
    assert plan.opens == 6
    assert (plan.decoded_to_range_end, plan.decoded_whole) == (310, 380)


def test_batch_size_zero_is_one_batch() -> None:
    assert entry_ranges([2, 0, 3], 0).batches == ((Range(0, 0, 2), Range(2, 0, 3)),)


def test_no_entries_make_no_batch() -> None:
    for batch_size in (0, 10):
        plan = entry_ranges([0, 0], batch_size)
        assert (plan.batches, plan.opens) == ((), 0)


def test_a_cap_on_manifests_cuts_batches_short() -> None:
    plan = entry_ranges([1] * 5, 100, max_manifests=2)
    assert [len(batch) for batch in plan.batches] == [2, 2, 1]


@given(COUNTS, st.integers(0, 100), st.integers(1, 5))
def test_every_physical_entry_is_covered_once_in_order(counts: list[int], batch_size: int, cap: int) -> None:
    plan = entry_ranges(counts, batch_size, cap)
    assert covered(plan) == [(manifest, at) for manifest, count in enumerate(counts) for at in range(count)]
    if batch_size:
        assert all(sum(part.end - part.start for part in batch) <= batch_size for batch in plan.batches)
        assert all(len(batch) <= cap for batch in plan.batches)


@given(COUNTS, st.integers(1, 100))
def test_opens_stay_within_manifests_plus_batches(counts: list[int], batch_size: int) -> None:
    plan = entry_ranges(counts, batch_size)
    assert plan.opens <= max(0, sum(count > 0 for count in counts) + len(plan.batches) - 1)
    assert sum(counts) <= plan.decoded_to_range_end <= plan.decoded_whole


def test_an_unknown_count_asks_to_read_the_manifest() -> None:
    with pytest.raises(InputError, match="manifest 1 not recorded: expected a count, read the manifest"):
        entry_ranges([1, None], 10)


@pytest.mark.parametrize(
    ("entries", "batch_size", "cap", "named"),
    [([-1], 1, 1, "entries -1"), ([1], -1, 1, "batch_size -1"), ([1], 1, 0, "max_manifests 0")],
)
def test_numbers_out_of_range_are_named(entries: list[int], batch_size: int, cap: int, named: str) -> None:
    with pytest.raises(InputError, match=named):
        entry_ranges(entries, batch_size, cap)


def test_more_ranges_than_a_server_can_hold_are_refused_before_they_are_cut() -> None:
    assert len(entry_ranges([999], 1).batches) == 999
    with pytest.raises(InputError, match="batch_size 1: cuts 10,000,000 manifest entries into 10,000,010 ranges"):
        entry_ranges([1_000_000] * 10, 1)
