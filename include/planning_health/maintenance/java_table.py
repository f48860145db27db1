"""What maintenance needs of Iceberg's Java API beyond SQL, and what its exceptions mean."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final

from planning_health.metadata.java_errors import causes
from planning_health.redaction import first_line

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

RUN_ID_PROPERTY: Final = "planning-health.run-id"
SPEC_ID_PROPERTY: Final = "planning-health.spec-id"
ACTION_PROPERTY: Final = "planning-health.action"
"""Snapshot summary keys that mark a commit of ours; the last one a trim's only."""

TRIM: Final = "trim_statistics"


class FailureKind(StrEnum):
    """What a failed commit means for the table."""

    CONFLICT = "conflict"
    STATE_UNKNOWN = "state_unknown"
    OTHER = "other"


_CONFLICT_CLASSES: Final = frozenset({"CommitFailedException", "NotFoundException", "FileNotFoundException"})
_CONFLICT_MESSAGES: Final = ("could not be found in the latest snapshot", "must have the same number of active files")


def iceberg_version(spark: SparkSession) -> str:
    """The version of the Iceberg runtime in Spark, for example ``1.12.0``."""
    return str(spark._jvm.org.apache.iceberg.IcebergBuild.version())


def failure_kind(error: BaseException) -> FailureKind:
    """Classifies an exception of a commit.

    A manifest that is gone is a conflict at first: a concurrent commit merged it, and the next measurement tells
    whether the current snapshot lacks one (apache/iceberg#3466).
    """
    kind = FailureKind.OTHER
    for java in causes(error):
        name, message = java.getClass().getSimpleName(), str(java.getMessage())
        if name == "CommitStateUnknownException":
            return FailureKind.STATE_UNKNOWN
        if name in _CONFLICT_CLASSES or any(text in message for text in _CONFLICT_MESSAGES):
            kind = FailureKind.CONFLICT
    return kind


def describe(error: BaseException) -> str:
    """One line on an exception: the Java class and message where there is one."""
    java = next(causes(error), None)
    if java is None:
        return f"{type(error).__name__}: {first_line(error)}"
    return f"{java.getClass().getSimpleName()}: {first_line(Exception(str(java.getMessage())))}"


def own_snapshots(java_table: Any, run_id: str) -> dict[int, int]:
    """The snapshots in the current history that a run committed, oldest first: spec id → snapshot id.

    Only ancestors of the current snapshot count: what was rolled back is not done.
    """
    found: dict[int, int] = {}
    snapshot = java_table.currentSnapshot()
    while snapshot is not None:
        summary = snapshot.summary()
        if summary.get(RUN_ID_PROPERTY) == run_id and summary.get(SPEC_ID_PROPERTY) is not None:
            found.setdefault(int(summary.get(SPEC_ID_PROPERTY)), snapshot.snapshotId())
        parent = snapshot.parentId()
        snapshot = java_table.snapshot(parent) if parent is not None else None
    return dict(reversed(found.items()))


def is_trim(java_table: Any, snapshot_id: int) -> bool:
    """Whether a snapshot of ours is a trim's."""
    snapshot = java_table.snapshot(snapshot_id)
    return snapshot is not None and bool(snapshot.summary().get(ACTION_PROPERTY) == TRIM)


def parent_id(java_table: Any, snapshot_id: int) -> int | None:
    """The parent of a snapshot, where the table still knows the snapshot."""
    snapshot = java_table.snapshot(snapshot_id)
    parent = snapshot.parentId() if snapshot is not None else None
    return int(parent) if parent is not None else None


def current_snapshot_id(java_table: Any) -> int | None:
    """The current snapshot's id."""
    snapshot = java_table.currentSnapshot()
    return int(snapshot.snapshotId()) if snapshot is not None else None
