"""How many tasks a scan asks for, and how the hints of one stage become one number.

Source of the rules: the desired-task-count estimate of the Rust project datafusion-distributed.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from planning_health.errors import InputError

BYTES_PER_PARTITION = 16 * 1024 * 1024
"""Bytes that one partition of a task is expected to read."""


@dataclass(frozen=True)
class TaskCountHint:
    """A scan's wish for its stage: a number of tasks, soft unless ``is_maximum``."""

    tasks: int
    is_maximum: bool = False

    def merge(self, other: TaskCountHint) -> TaskCountHint:
        """Two wishes: the larger wins. A maximum beats a wish. Two maxima: the smaller wins."""
        if self.is_maximum and other.is_maximum:
            return TaskCountHint(min(self.tasks, other.tasks), is_maximum=True)
        if self.is_maximum or other.is_maximum:
            return self if self.is_maximum else other
        return TaskCountHint(max(self.tasks, other.tasks))


def merge_hints(hints: Iterable[TaskCountHint]) -> TaskCountHint:
    """Merges the hints of all scans of one stage; a stage without hints wants one task."""
    merged: TaskCountHint | None = None
    for hint in hints:
        merged = hint if merged is None else merged.merge(hint)
    return merged or TaskCountHint(1)


def estimate_tasks(
    total_bytes: int,
    *,
    target_partitions: int,
    files: int,
    max_tasks: int,
    bytes_per_partition: int = BYTES_PER_PARTITION,
) -> int:
    """The number of tasks that a scan asks for.

    ``bytes / bytes_per_partition / target_partitions`` in float64 and in that order, then capped by the files and by
    ``max_tasks``; rounded up once, at the end. The cap by files belongs to this scan's wish and does not limit the
    stage.

    Args:
        total_bytes: planned bytes.
        target_partitions: partitions that one task runs.
        files: planned units.
        max_tasks: usually the number of workers; less than 1 counts as 1.
        bytes_per_partition: bytes that one partition should read.

    Raises:
        InputError: a divisor is not positive, or bytes or files are negative.
    """
    for name, value, least in (
        ("bytes_per_partition", bytes_per_partition, 1),
        ("target_partitions", target_partitions, 1),
        ("bytes", total_bytes, 0),
        ("files", files, 0),
    ):
        if value < least:
            raise InputError(f"{name} {value}: expected at least {least}")
    wanted = float(total_bytes) / float(bytes_per_partition) / float(target_partitions)
    capped = min(wanted, float(files), float(max(1, max_tasks)))
    return max(1, math.ceil(capped))
