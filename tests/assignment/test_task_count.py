"""How many tasks a scan asks for, and what a stage makes of several wishes."""

from __future__ import annotations

import pytest

from planning_health.assignment import TaskCountHint, estimate_tasks, merge_hints
from planning_health.errors import InputError

MIB, GIB = 2**20, 2**30


@pytest.mark.parametrize(
    ("total", "per_partition", "partitions", "files", "max_tasks", "tasks"),
    [
        (4480382, 1_000_000, 2, 7, 4, 3),
        (4480382, 1, 16, 4, 10, 4),
        (30, 4, 3, 100, 100, 3),
        (GIB, 16 * MIB, 16, 3, 8, 3),
        (10 * GIB, 16 * MIB, 16, 1000, 8, 8),
        (0, 1_000_000, 2, 0, 4, 1),
    ],
)
def test_task_count_estimate(
    total: int, per_partition: int, partitions: int, files: int, max_tasks: int, tasks: int
) -> None:
    estimated = estimate_tasks(
        total, bytes_per_partition=per_partition, target_partitions=partitions, files=files, max_tasks=max_tasks
    )
    assert estimated == tasks


def test_a_partition_reads_16_mib_by_default() -> None:
    for total, tasks in ((10 * 16 * MIB, 5), (10 * 16 * MIB + 1, 6)):
        assert estimate_tasks(total, target_partitions=2, files=100, max_tasks=100) == tasks


def test_no_worker_still_means_one_task() -> None:
    assert estimate_tasks(GIB, target_partitions=1, files=10, max_tasks=0) == 1


@pytest.mark.parametrize("name", ["bytes_per_partition", "target_partitions"])
def test_a_zero_divisor_is_an_error(name: str) -> None:
    arguments = {"bytes_per_partition": 1, "target_partitions": 1, "files": 1, "max_tasks": 1, name: 0}
    with pytest.raises(InputError, match=f"{name} 0: expected at least 1"):
        estimate_tasks(1, **arguments)


@pytest.mark.parametrize("name", ["files", "bytes"])
def test_negative_work_is_an_error(name: str) -> None:
    files, total = (-1, 1) if name == "files" else (1, -1)
    with pytest.raises(InputError, match=f"{name} -1"):
        estimate_tasks(total, target_partitions=1, files=files, max_tasks=1)


@pytest.mark.parametrize(
    ("hints", "merged"),
    [
        ([TaskCountHint(4), TaskCountHint(12)], TaskCountHint(12)),
        ([TaskCountHint(12), TaskCountHint(4)], TaskCountHint(12)),
        ([TaskCountHint(12), TaskCountHint(2, is_maximum=True)], TaskCountHint(2, is_maximum=True)),
        ([TaskCountHint(20, is_maximum=True), TaskCountHint(12)], TaskCountHint(20, is_maximum=True)),
        ([TaskCountHint(5, is_maximum=True), TaskCountHint(3, is_maximum=True)], TaskCountHint(3, is_maximum=True)),
        ([], TaskCountHint(1)),
    ],
)
def test_hints_of_one_stage_merge(hints: list[TaskCountHint], merged: TaskCountHint) -> None:
    assert merge_hints(hints) == merged
