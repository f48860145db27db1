"""The calculators behind ``planning-health assign``: plain values in, one JSON document out."""

from __future__ import annotations

import re
import reprlib
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any, Final

import numpy as np
import pyarrow as pa

from planning_health.assignment.affinity import Hint, TaskHints, rank_workers
from planning_health.assignment.balance import (
    Costs,
    default_assignment,
    feeds,
    greedy_assignment,
    lower_bound,
    memory_estimate,
)
from planning_health.assignment.limits import AFFINITY_LIMITS, BALANCE_LIMITS
from planning_health.assignment.task_count import BYTES_PER_PARTITION, estimate_tasks
from planning_health.assignment.units import UnitTable
from planning_health.errors import InputError

MOST_PAIRS: Final = 1_000_000
"""Most feeds (tasks times partitions), and most rankings of a worker for a task, that are listed."""

MOST_DIGITS: Final = 100
"""Longest integer that is read; costs end at 2^64 - 1."""

_INTEGER: Final = re.compile(r"[+-]?[0-9]+")
_REPR: Final = reprlib.Repr()
_REPR.maxstring = _REPR.maxother = _REPR.maxlong = 77


def check_size(tasks: int, each: int, name: str = "partitions") -> None:
    """Refuses what would not fit into memory.

    Args:
        tasks: number of tasks.
        each: how many of the other there are for each task.
        name: what the other is.

    Raises:
        InputError: the two numbers multiply to more than ``MOST_PAIRS``, or one alone is above it.
    """
    if tasks < 1:
        raise InputError(f"tasks {tasks}: expected at least 1")
    if max(tasks, each, tasks * each) > MOST_PAIRS:
        raise InputError(f"tasks {tasks} x {name} {each}: expected at most {MOST_PAIRS:,} together")


def assign_costs(costs: Costs, tasks: int, strategy: str = "default", partitions: int = 1) -> dict[str, Any]:
    """Assigns units of the given costs.

    Args:
        costs: one integer of 0 … 2^64 - 1 per unit.
        tasks: number of tasks.
        strategy: ``default`` lists units per feed (``task * partitions + partition``), ``greedy`` per task.
        partitions: local partitions of a task.

    Raises:
        InputError: an argument out of its range, or an unknown strategy.
    """
    check_size(tasks, partitions)
    if strategy == "default":
        placed = default_assignment(costs, tasks)
        groups = feeds(len(costs), tasks, partitions)
    elif strategy == "greedy":
        placed = greedy_assignment(costs, tasks)
        groups = list(placed.groups)
    else:
        raise InputError(f"strategy {strategy!r}: expected default or greedy")
    return {
        "assignment": groups,
        "loads": list(placed.loads),
        "makespan": placed.makespan,
        "lower_bound": lower_bound(costs, tasks),
        "skew": placed.skew,
        "memory": asdict(memory_estimate(len(costs), tasks)),
        "limits": list(BALANCE_LIMITS),
    }


def assign_units(units: UnitTable, tasks: int, strategy: str = "default", partitions: int = 1) -> dict[str, Any]:
    """Assigns a scan's units like ``assign_costs``; indexes refer to ``files``.

    They are ordered by path, start and length before greedy balancing. Default deals them out as planning found them.

    Raises:
        InputError: an argument out of its range, or an unknown strategy.
    """
    order = units.stable_order() if strategy == "greedy" else np.arange(len(units))
    document = assign_costs(units.costs[order], tasks, strategy, partitions)
    return {**document, "files": units.paths.take(pa.array(order)).to_pylist()}


def assign_affinity(hints: object, workers: Sequence[str]) -> dict[str, Any]:
    """Ranks the workers for every task of a hints document.

    Args:
        hints: parsed JSON, ``[{"task": id, "hints": [[key, weight], …]}, …]``.
        workers: URLs in any order.

    Raises:
        InputError: the document has another shape, a worker is not an absolute URL, or there are too many of both.
    """
    tasks = _read_hints(hints)
    if tasks:
        check_size(len(tasks), len(workers), "workers")
    table = TaskHints.of([task_hints for _, task_hints in tasks])
    ranking = rank_workers(table, workers)
    return {
        "tasks": [
            {
                "task": name,
                "ranking": [{"worker": worker, "score": score} for worker, score in ranking.of_task(index)],
                "hinted_objects": table.objects(index),
                "hinted_bytes": table.bytes(index),
            }
            for index, (name, _) in enumerate(tasks)
        ],
        "preferred": ranking.preferred_counts(),
        "limits": list(AFFINITY_LIMITS),
    }


def estimate(
    total_bytes: int, partitions: int, files: int, max_tasks: int, bytes_per_partition: int = BYTES_PER_PARTITION
) -> dict[str, int]:
    """The number of tasks that a scan of this size asks for.

    Raises:
        InputError: a value out of its range.
    """
    tasks = estimate_tasks(
        total_bytes,
        target_partitions=partitions,
        files=files,
        max_tasks=max_tasks,
        bytes_per_partition=bytes_per_partition,
    )
    return {"tasks": tasks}


def parse_integers(text: str, name: str) -> list[int]:
    """Integers separated by commas; an empty text is an empty list.

    Args:
        text: for example ``100,1,2,3``.
        name: what the error calls the value.

    Raises:
        InputError: a part is not an integer, of digits 0 to 9 and no more than ``MOST_DIGITS`` of them.
    """
    numbers = []
    for part in text.split(",") if text.strip() else []:
        number = part.strip()
        if not _INTEGER.fullmatch(number) or len(number) > MOST_DIGITS:
            raise InputError(f"{name} {_shown(number)}: expected integers separated by commas")
        numbers.append(int(number))
    return numbers


def _read_hints(document: object) -> list[tuple[object, list[Hint]]]:
    if not isinstance(document, list):
        raise InputError(f"hints {_shown(document)}: expected a list of objects with task and hints")
    return [_read_task(entry) for entry in document]


def _read_task(entry: object) -> tuple[object, list[Hint]]:
    if not isinstance(entry, dict) or "task" not in entry or not isinstance(entry.get("hints"), list):
        raise InputError(f'hints entry {_shown(entry)}: expected {{"task": id, "hints": [[key, weight], …]}}')
    return entry["task"], [_read_hint(hint) for hint in entry["hints"]]


def _read_hint(hint: object) -> Hint:
    match hint:
        case [str(key), int(weight)] if not isinstance(weight, bool) and _is_unicode(key):
            return key, weight
    raise InputError(f"hint {_shown(hint)}: expected [key, weight] with a text and an integer")


def _is_unicode(text: str) -> bool:
    """Whether a text can be hashed as UTF-8: JSON can carry halves of surrogate pairs, which cannot."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _shown(value: object) -> str:
    """A value in short; neither long nor deep ones are written out."""
    return _REPR.repr(value)
