"""Default and greedy assignment: the specified values and the properties that hold for every input."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planning_health.assignment import (
    Assignment,
    UnitTable,
    collect_units,
    compare,
    default_assignment,
    default_units,
    feeds,
    greedy_assignment,
    greedy_units,
    lower_bound,
    memory_estimate,
)
from planning_health.errors import InputError

LARGEST = 2**64 - 1
COSTS = st.lists(st.integers(0, LARGEST), max_size=40)


def optimum(costs: list[int], tasks: int) -> int:
    """The smallest possible makespan, by trying every assignment of the first units and pruning equal ones."""
    loads = {(0,) * tasks}
    for cost in costs:
        loads = {
            tuple(sorted((*state[:task], state[task] + cost, *state[task + 1 :])))
            for state, task in itertools.product(loads, range(tasks))
        }
    return min(max(state) for state in loads)


def test_default_visits_tasks_before_partitions() -> None:
    assert feeds(7, 3, 2) == [[0, 6], [3], [1], [4], [2], [5]]


def test_default_gives_each_task_one_file_before_filling_partitions() -> None:
    by_task = [feeds(4, 4, 16)[task * 16 : task * 16 + 16] for task in range(4)]
    assert [sum(map(len, partitions)) for partitions in by_task] == [1, 1, 1, 1]


@given(st.integers(0, 60), st.integers(1, 9), st.integers(1, 5))
def test_feeds_follow_the_formula_and_cover_every_unit_once(units: int, tasks: int, partitions: int) -> None:
    expected: list[list[int]] = [[] for _ in range(tasks * partitions)]
    for unit in range(units):
        expected[(unit % tasks) * partitions + (unit // tasks) % partitions].append(unit)
    assert feeds(units, tasks, partitions) == expected


@given(COSTS, st.integers(1, 6))
def test_default_groups_are_the_feeds_of_one_partition(costs: list[int], tasks: int) -> None:
    placed = default_assignment(costs, tasks)
    assert list(placed.groups) == feeds(len(costs), tasks)
    assert list(placed.loads) == [sum(costs[unit] for unit in group) for group in placed.groups]


@pytest.mark.parametrize(
    ("costs", "tasks", "groups"),
    [
        ([100, 1, 2, 3], 2, [[0], [3, 2, 1]]),
        ([0] * 7, 2, [[0, 2, 4, 6], [1, 3, 5]]),
        ([], 2, [[], []]),
        ([LARGEST] * 4, 2, [[0, 2], [1, 3]]),
        ([5, 5, 5, 5, 0, 0], 3, [[0, 3], [1, 4], [2, 5]]),
    ],
)
def test_greedy_assignment(costs: list[int], tasks: int, groups: list[list[int]]) -> None:
    assert list(greedy_assignment(costs, tasks).groups) == groups


def test_greedy_loads_are_exact_beyond_64_bits() -> None:
    assert greedy_assignment([LARGEST] * 4, 2).loads == (2 * LARGEST, 2 * LARGEST)


@pytest.mark.parametrize("assign", [default_assignment, greedy_assignment, lower_bound])
def test_no_task_is_an_error(assign) -> None:
    with pytest.raises(InputError, match="tasks 0: expected at least 1"):
        assign([1], 0)


@pytest.mark.parametrize("cost", [-1, 2**64])
def test_a_cost_beyond_unsigned_64_bits_is_an_error(cost: int) -> None:
    with pytest.raises(InputError, match=f"cost {cost}"):
        greedy_assignment([cost], 1)


def test_no_partition_is_an_error() -> None:
    with pytest.raises(InputError, match="partitions 0"):
        feeds(1, 1, 0)


@given(COSTS, st.integers(1, 9))
def test_greedy_covers_every_unit_exactly_once(costs: list[int], tasks: int) -> None:
    placed = greedy_assignment(costs, tasks)
    assert sorted(itertools.chain(*placed.groups)) == list(range(len(costs)))
    assert list(placed.loads) == [sum(costs[unit] for unit in group) for group in placed.groups]


@given(COSTS, st.integers(1, 9))
def test_greedy_places_each_unit_on_the_least_loaded_task(costs: list[int], tasks: int) -> None:
    groups: list[list[int]] = [[] for _ in range(tasks)]
    for unit in sorted(range(len(costs)), key=lambda unit: (-costs[unit], unit)):
        least = min(range(tasks), key=lambda t: (sum(costs[u] for u in groups[t]), len(groups[t]), t))
        groups[least].append(unit)
    assert list(greedy_assignment(costs, tasks).groups) == groups


@settings(max_examples=60)
@given(st.lists(st.integers(0, 50), min_size=1, max_size=9), st.integers(1, 4))
def test_greedy_stays_within_four_thirds_of_the_optimum(costs: list[int], tasks: int) -> None:
    best = optimum(costs, tasks)
    makespan = greedy_assignment(costs, tasks).makespan
    assert lower_bound(costs, tasks) <= best <= makespan
    assert 3 * tasks * makespan <= (4 * tasks - 1) * best


@given(COSTS, st.integers(1, 9))
def test_no_makespan_is_below_the_lower_bound(costs: list[int], tasks: int) -> None:
    for assign in (default_assignment, greedy_assignment):
        assert assign(costs, tasks).makespan >= max([0, *costs])
        assert assign(costs, tasks).makespan * tasks >= sum(costs)


@pytest.mark.parametrize("assign", [greedy_units, default_units])
@given(st.lists(st.tuples(st.text(max_size=3), st.integers(0, 9)), max_size=12), st.integers(1, 4), st.randoms())
def test_units_in_stable_order_do_not_depend_on_the_order_of_discovery(assign, files, tasks: int, random) -> None:
    shuffled = list(files)
    random.shuffle(shuffled)

    def contents(rows) -> list[list[tuple[str, int]]]:
        placed = assign(collect_units([(path, size, 1) for path, size in rows]), tasks)
        return [[rows[index] for index in group] for group in placed.groups]

    assert contents(files) == contents(shuffled)


def test_a_local_partition_reads_every_pth_unit_of_its_task() -> None:
    placed = Assignment(([4, 2, 7, 1, 9],), (0,))
    assert [placed.partition(0, partition, 2) for partition in range(2)] == [[4, 7, 9], [2, 1]]


def test_makespan_mean_and_skew() -> None:
    placed = greedy_assignment([100, 1, 2, 3], 2)
    assert (placed.makespan, placed.mean, placed.skew) == (100, 53.0, 100 / 53)


def test_skew_is_unknown_without_load() -> None:
    assert greedy_assignment([0, 0], 2).skew is None
    assert greedy_assignment([], 2).skew is None


def test_lower_bound_is_the_largest_unit_or_the_even_share() -> None:
    assert lower_bound([100, 1, 2, 3], 2) == 100
    assert lower_bound([3, 3, 3], 2) == 4.5
    assert lower_bound([], 2) == 0
    assert lower_bound([LARGEST] * 4, 2) == 2 * LARGEST


@pytest.mark.parametrize(
    ("units", "tasks", "retained", "scratch"),
    [(7, 1, 160, 256), (20_000, 10, 320_480, 640_320), (100_000, 8, 1_600_384, 3_200_256)],
)
def test_memory_estimate(units: int, tasks: int, retained: int, scratch: int) -> None:
    estimate = memory_estimate(units, tasks)
    assert (estimate.retained_bytes, estimate.scratch_bytes) == (retained, scratch)


def test_comparison_shows_what_greedy_and_splitting_gain_on_a_skewed_scan() -> None:
    units = UnitTable.from_arrays([f"f{i}" for i in range(8)], [100, 1, 1, 1, 100, 1, 1, 1])
    whole = compare(units, [1, 4])[1]
    assert whole.default.loads == (200, 2, 2, 2)
    assert whole.default.files == (2, 2, 2, 2)
    assert whole.greedy.makespan == 100
    assert whole.lower_bound == 100
    parts = UnitTable.from_arrays(units.paths.take([0] * 10 + [4] * 10), [10] * 20, starts=[*range(0, 100, 10)] * 2)
    assert compare(parts, [4])[0].greedy.makespan == 50
