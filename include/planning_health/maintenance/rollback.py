"""Undoes a maintenance run: its properties and its snapshots, as long as nothing else has happened since."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from planning_health.errors import WorkFailedError
from planning_health.identifiers import TableName
from planning_health.maintenance.java_table import (
    FailureKind,
    current_snapshot_id,
    describe,
    failure_kind,
    own_snapshots,
    parent_id,
)
from planning_health.maintenance.properties import PropertyChange

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class CannotRollBackError(WorkFailedError):
    """Rolling back would undo more than the run did."""


@dataclass(frozen=True)
class RollbackPlan:
    """What undoing a run takes.

    Attributes:
        snapshot_id: the snapshot to go back to; ``None`` when the run committed none, or is rolled back already.
        properties: the properties to set back.
    """

    snapshot_id: int | None
    properties: tuple[PropertyChange, ...]


def plan_rollback(java_table: Any, run_id: str, changes: Sequence[PropertyChange]) -> RollbackPlan:
    """Checks that a run can be undone.

    Args:
        java_table: the table, freshly loaded.
        run_id: the run.
        changes: the properties that the run set, or was about to set.

    Raises:
        CannotRollBackError: when somebody has committed since, changed one of the properties, or expired the snapshot
            to go back to.
    """
    current = java_table.properties()
    to_undo = tuple(change for change in changes if current.get(change.key) != change.before)
    for change in to_undo:
        if current.get(change.key) != change.after:
            raise CannotRollBackError(
                f"property {change.key} is {current.get(change.key)!r}; the run had set {change.after!r}, so that "
                "somebody has changed it since"
            )
    undo = tuple(PropertyChange(change.key, change.after, change.before) for change in to_undo)
    return RollbackPlan(_target(java_table, run_id), undo)


def _target(java_table: Any, run_id: str) -> int | None:
    ours = set(own_snapshots(java_table, run_id).values())
    if not ours:
        return None
    target = current_snapshot_id(java_table)
    if target not in ours:
        raise CannotRollBackError(f"snapshot {target} was committed after the run's; going back would lose it")
    undone = set()
    while target is not None and target in ours:
        undone.add(target)
        target = parent_id(java_table, target)
    if undone != ours:
        raise CannotRollBackError("others have committed between the run's own snapshots; going back would lose that")
    if target is None or java_table.snapshot(target) is None:
        raise CannotRollBackError("the snapshot before the run's has been expired")
    return target


def roll_back(spark: SparkSession, java_table: Any, table: TableName, plan: RollbackPlan) -> None:
    """Undoes a run as planned, in one commit on the very state of the table that the plan was made from.

    Iceberg's own rollback tries again on top of what others have committed meanwhile, and loses that.

    Raises:
        CannotRollBackError: when somebody has committed since the table was loaded.
        WorkFailedError: when the catalog refuses.
    """
    if plan.snapshot_id is None and not plan.properties:
        return
    jvm: Any = spark._jvm
    operations = java_table.operations()
    base = operations.current()
    update = jvm.org.apache.iceberg.TableMetadata.buildFrom(base)
    if plan.snapshot_id is not None:
        update = update.setBranchSnapshot(plan.snapshot_id, "main")
    update = update.setProperties({change.key: change.after for change in plan.properties if change.after is not None})
    update = update.removeProperties({change.key for change in plan.properties if change.after is None})
    try:
        operations.commit(base, update.build())
    except Exception as error:
        if failure_kind(error) is FailureKind.CONFLICT:
            raise CannotRollBackError(
                f"somebody has changed {table} at this moment, and going back could lose that; try again"
            ) from error
        raise WorkFailedError(f"{table} could not be rolled back: {describe(error)}") from error
