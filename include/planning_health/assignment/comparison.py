"""Default against greedy for one scan, per task count, with the bound that no assignment of whole units can beat."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from planning_health.assignment.balance import (
    Assignment,
    MemoryEstimate,
    default_assignment,
    greedy_units,
    lower_bound,
    memory_estimate,
)
from planning_health.assignment.units import UnitTable


@dataclass(frozen=True)
class Balance:
    """How evenly one strategy spreads a scan.

    Attributes:
        makespan: the largest load, in cost units (bytes).
        mean: the mean load.
        skew: makespan over mean; None when there is no load.
        loads: load per task.
        files: units per task.
    """

    makespan: int
    mean: float
    skew: float | None
    loads: tuple[int, ...]
    files: tuple[int, ...]

    @classmethod
    def of(cls, assignment: Assignment) -> Balance:
        """Summarises an assignment."""
        files = tuple(len(group) for group in assignment.groups)
        return cls(assignment.makespan, assignment.mean, assignment.skew, assignment.loads, files)


@dataclass(frozen=True)
class Comparison:
    """Both strategies on the same units and the same number of tasks."""

    tasks: int
    default: Balance
    greedy: Balance
    lower_bound: float
    memory: MemoryEstimate


def compare(units: UnitTable, task_counts: Iterable[int]) -> list[Comparison]:
    """Assigns the units with both strategies for every task count.

    Default deals in discovery order, greedy in its stable order. A whole file is never split, so that the largest file
    bounds both; compare the parts of the split files to see what splitting would do.

    Raises:
        InputError: a task count below 1.
    """
    return [
        Comparison(
            tasks=tasks,
            default=Balance.of(default_assignment(units.costs, tasks)),
            greedy=Balance.of(greedy_units(units, tasks)),
            lower_bound=lower_bound(units.costs, tasks),
            memory=memory_estimate(len(units), tasks),
        )
        for tasks in task_counts
    ]
