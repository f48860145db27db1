"""The switches of whole-file balancing and affinity routing, as the engine has them."""

from __future__ import annotations

from dataclasses import dataclass

from planning_health.assignment.units import PLANNING_MAX_FILES
from planning_health.errors import InputError


@dataclass(frozen=True)
class AssignmentOptions:
    """Options of one scan; both balancing options are off by default and need planned files.

    Attributes:
        plan_files: discover the surviving files while planning, not while executing.
        greedy_file_assignment: largest file first to the least loaded task.
        file_task_affinity: tell the router which files a task reads.
        planning_max_files: how many files planning may keep.

    Raises:
        InputError: a balancing option without planned files, or a limit below 1.
    """

    plan_files: bool = True
    greedy_file_assignment: bool = False
    file_task_affinity: bool = False
    planning_max_files: int = PLANNING_MAX_FILES

    def __post_init__(self) -> None:
        for name in ("greedy_file_assignment", "file_task_affinity"):
            if getattr(self, name) and not self.plan_files:
                raise InputError(f"{name}=true with plan_files=false: expected plan_files=true, it needs planned files")
        if self.planning_max_files < 1:
            raise InputError(f"planning_max_files {self.planning_max_files}: expected at least 1")
