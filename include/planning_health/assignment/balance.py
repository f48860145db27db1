"""Sharing units among tasks: by turns (default) or largest first (greedy).

Source of the rules: ``greedy_work_unit_assignment`` and the default feed order of the Rust project
datafusion-distributed. Largest-first list scheduling is Graham's LPT rule with the bound 4/3 - 1/(3T).
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from planning_health.assignment.units import MAX_U64, UnitTable
from planning_health.errors import InputError

Costs = Sequence[int] | npt.NDArray[np.uint64]
"""One cost per unit, unsigned 64-bit."""


@dataclass(frozen=True)
class Assignment:
    """Which task reads which units.

    Attributes:
        groups: unit indexes per task, in the order in which the task receives them.
        loads: exact sum of the costs per task, as Python integers.
    """

    groups: tuple[list[int], ...]
    loads: tuple[int, ...]

    @property
    def makespan(self) -> int:
        """The largest load."""
        return max(self.loads)

    @property
    def mean(self) -> float:
        """The mean load."""
        return sum(self.loads) / len(self.loads)

    @property
    def skew(self) -> float | None:
        """Largest load over mean load; None when there is no load at all."""
        total = sum(self.loads)
        return self.makespan * len(self.loads) / total if total else None

    def partition(self, task: int, partition: int, partitions: int) -> list[int]:
        """The units that one of a task's local partitions reads: every ``partitions``-th one."""
        return self.groups[task][partition::partitions]


@dataclass(frozen=True)
class MemoryEstimate:
    """What an assignment costs its coordinator on a 64-bit machine, in bytes."""

    retained_bytes: int
    scratch_bytes: int


def memory_estimate(units: int, tasks: int) -> MemoryEstimate:
    """Indexes and one vector per task, doubled for spare capacity; and the arrays and heap that building them needs."""
    return MemoryEstimate(retained_bytes=2 * (8 * units + 24 * tasks), scratch_bytes=32 * units + 32 * tasks)


def lower_bound(costs: Costs, tasks: int) -> float:
    """No assignment of whole units has a smaller makespan: ``max(largest cost, sum / tasks)``."""
    _check_tasks(tasks)
    values = _python_ints(costs)
    total = sum(values)
    mean = total / tasks if total % tasks else total // tasks  # exact where it can be: sums exceed float64
    return max(max(values, default=0), mean)


def feeds(units: int, tasks: int, partitions: int = 1) -> list[list[int]]:
    """The default assignment as feeds, numbered ``task * partitions + partition``.

    Unit i goes to feed ``(i % tasks) * partitions + (i // tasks) % partitions``: all tasks get one unit before any
    local partition gets its second.

    Raises:
        InputError: fewer than one task or partition.
    """
    _check_tasks(tasks)
    if partitions < 1:
        raise InputError(f"partitions {partitions}: expected at least 1")
    stride = tasks * partitions
    return [
        list(range(task + partition * tasks, units, stride)) for task in range(tasks) for partition in range(partitions)
    ]


def default_assignment(costs: Costs, tasks: int) -> Assignment:
    """Deals the units to the tasks by turns, in the order given.

    Raises:
        InputError: fewer than one task.
    """
    _check_tasks(tasks)
    values = _python_ints(costs)
    groups = tuple(list(range(task, len(values), tasks)) for task in range(tasks))
    return Assignment(groups, tuple(sum(values[task::tasks]) for task in range(tasks)))


def greedy_assignment(costs: Costs, tasks: int) -> Assignment:
    """Places the units, largest first, on the task with the smallest (load, number of units, index).

    Equal costs keep the order given. Nothing is split, no worker is chosen, every index appears once. Loads are exact
    integers and never overflow. The makespan is at most ``4/3 - 1/(3 * tasks)`` of the optimum.

    Raises:
        InputError: fewer than one task, or a cost outside 0 … 2^64 - 1.
    """
    _check_tasks(tasks)
    values = cost_array(costs)
    order = np.argsort(~values, kind="stable")  # the complement turns "largest first" into ascending order
    groups: tuple[list[int], ...] = tuple([] for _ in range(tasks))
    heap = [(0, 0, task) for task in range(tasks)]
    replace_root = heapq.heapreplace
    for index, cost in zip(order.tolist(), values[order].tolist(), strict=True):
        load, count, task = heap[0]
        groups[task].append(index)
        replace_root(heap, (load + cost, count + 1, task))
    loads = [0] * tasks
    for load, _, task in heap:
        loads[task] = load
    return Assignment(groups, tuple(loads))


def greedy_units(units: UnitTable, tasks: int) -> Assignment:
    """The greedy assignment of a scan's units, the same for every order in which they were discovered.

    Raises:
        InputError: fewer than one task.
    """
    return _in_stable_order(greedy_assignment, units, tasks)


def default_units(units: UnitTable, tasks: int) -> Assignment:
    """The default assignment of a scan's units in their stable order, as affinity routing starts from.

    Raises:
        InputError: fewer than one task.
    """
    return _in_stable_order(default_assignment, units, tasks)


def _in_stable_order(assign: Callable[[Costs, int], Assignment], units: UnitTable, tasks: int) -> Assignment:
    order = units.stable_order()
    placed = assign(units.costs[order], tasks)
    rows = order.tolist()
    return Assignment(tuple([rows[index] for index in group] for group in placed.groups), placed.loads)


def cost_array(costs: Costs) -> npt.NDArray[np.uint64]:
    """Costs as unsigned 64-bit integers.

    Raises:
        InputError: a cost is not an integer of 0 … 2^64 - 1.
    """
    if isinstance(costs, np.ndarray):
        return costs.astype(np.uint64, copy=False)
    for cost in costs:
        if not 0 <= cost <= MAX_U64:
            raise InputError(f"cost {cost}: expected an integer of 0 … {MAX_U64}")
    return np.array(costs, dtype=np.uint64)


def _python_ints(costs: Costs) -> list[int]:
    values: list[int] = cost_array(costs).tolist()
    return values


def _check_tasks(tasks: int) -> None:
    if tasks < 1:
        raise InputError(f"tasks {tasks}: expected at least 1")
