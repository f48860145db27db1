"""Rewrites one spec's manifests, once for each run, whatever happens around it: by Iceberg's Spark action or a trim."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from tenacity import RetryCallState, Retrying, retry_if_exception_type, stop_after_attempt, wait_random_exponential

from planning_health.errors import WorkFailedError
from planning_health.identifiers import TableName
from planning_health.maintenance.java_table import (
    RUN_ID_PROPERTY,
    SPEC_ID_PROPERTY,
    FailureKind,
    describe,
    failure_kind,
    own_snapshots,
)
from planning_health.metadata.record_spark import load_java_table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

logger = logging.getLogger(__name__)

FIRST_WAIT_SECONDS: Final = 1.0
LONGEST_WAIT_SECONDS: Final = 60.0

SAMPLE_SIZE: Final = "spark.sql.execution.rangeExchange.sampleSizePerPartition"
SAMPLED_ENTRIES: Final = 20_000
"""Entries that Spark looks at for each new manifest, before it cuts: more than a manifest of 8 MiB usually holds."""


class ConflictError(WorkFailedError):
    """A concurrent commit won; the table is as that commit left it."""


class CommitStateUnknownError(WorkFailedError):
    """The commit's answer was lost and no snapshot of ours is in the table's history."""


class NothingToRewriteError(WorkFailedError):
    """After a conflict the table no longer gains by the rewrite."""


@dataclass(frozen=True)
class RewriteOutcome:
    """What a rewrite did.

    Attributes:
        snapshot_id: our snapshot.
        attempts: commits tried by this call; 0 when an earlier attempt of the same run had committed already.
        conflicts: what each lost attempt met.
    """

    snapshot_id: int
    attempts: int
    conflicts: tuple[str, ...]


@dataclass(frozen=True)
class RewriteTask:
    """One rewrite: the spec, the fields to cluster by (empty: all), and the run that it belongs to."""

    table: TableName
    spec_id: int
    sort_by: tuple[str, ...]
    run_id: str

    def summary(self) -> dict[str, str]:
        """What marks the commit's snapshot as this rewrite's."""
        return {RUN_ID_PROPERTY: self.run_id, SPEC_ID_PROPERTY: str(self.spec_id)}


def rewrite_manifests(
    spark: SparkSession,
    task: RewriteTask,
    commit: Callable[[Any], None],
    *,
    max_attempts: int,
    measure_again: Callable[[], None],
    sleep: Callable[[float], None] = time.sleep,
) -> RewriteOutcome:
    """Rewrites the spec's manifests in one commit that carries the run id.

    Args:
        spark: the session.
        task: what to rewrite.
        commit: makes one attempt on the freshly loaded table.
        max_attempts: attempts in all, when concurrent commits win.
        measure_again: called after each lost attempt, before the next one; what it raises ends the work.
        sleep: waits between the attempts (full jitter).

    Raises:
        ConflictError: when every attempt lost against a concurrent commit.
        CommitStateUnknownError: when the commit's answer was lost and the table's history does not show our commit.
        WorkFailedError: when the rewrite failed for another reason.
    """
    conflicts: list[str] = []

    def before_retry(state: RetryCallState) -> None:
        conflicts.append(str(state.outcome.exception()) if state.outcome else "")
        logger.warning("attempt %d on %s lost: %s", state.attempt_number, task.table, conflicts[-1])

    retrying = Retrying(
        retry=retry_if_exception_type(ConflictError),
        stop=stop_after_attempt(max_attempts),
        wait=wait_random_exponential(FIRST_WAIT_SECONDS, LONGEST_WAIT_SECONDS),
        before_sleep=before_retry,
        sleep=sleep,
        reraise=True,
    )
    attempts = 0
    for attempt in retrying:
        with attempt:
            if conflicts:
                measure_again()
            java_table = load_java_table(spark, task.table)
            if (ours := own_snapshots(java_table, task.run_id).get(task.spec_id)) is not None:
                return RewriteOutcome(ours, attempts, tuple(conflicts))
            attempts += 1
            _attempt(spark, task, java_table, commit)
    committed = own_snapshots(load_java_table(spark, task.table), task.run_id).get(task.spec_id)
    if committed is None:
        raise WorkFailedError(f"Iceberg found nothing to rewrite in spec {task.spec_id} of {task.table}")
    return RewriteOutcome(committed, attempts, tuple(conflicts))


@contextmanager
def even_cuts(spark: SparkSession) -> Iterator[None]:
    """Meanwhile, Spark cuts the entries into ranges by all of them, not by a sample of a few hundred.

    By Spark's default of 100 a new manifest is by chance some percent, at times a sixth, larger or smaller than meant.
    """
    before = spark.conf.get(SAMPLE_SIZE)
    spark.conf.set(SAMPLE_SIZE, SAMPLED_ENTRIES)
    try:
        yield
    finally:
        spark.conf.set(SAMPLE_SIZE, str(before))


def _attempt(spark: SparkSession, task: RewriteTask, java_table: Any, commit: Callable[[Any], None]) -> None:
    try:
        commit(java_table)
    except ConflictError:
        raise
    except Exception as error:
        kind = failure_kind(error)
        if kind is FailureKind.CONFLICT:
            raise ConflictError(describe(error)) from error
        if task.spec_id in own_snapshots(load_java_table(spark, task.table), task.run_id):
            logger.warning("the commit on %s landed although it reported %s", task.table, describe(error))
            return
        if kind is FailureKind.STATE_UNKNOWN:
            raise CommitStateUnknownError(
                f"the catalog's answer to the commit was lost and the history of {task.table} does not show run "
                f"{task.run_id!r}: do not remove orphan files; look at the table before running again "
                f"({describe(error)})"
            ) from error
        if isinstance(error, WorkFailedError):
            raise
        raise WorkFailedError(f"the manifests could not be rewritten: {describe(error)}") from error


def rewrite_with_iceberg(spark: SparkSession, task: RewriteTask, java_table: Any) -> None:
    """One attempt by Iceberg's Spark action: data and delete manifests, statistics as they are."""
    with even_cuts(spark):
        _action(spark, task, java_table).execute()


def _action(spark: SparkSession, task: RewriteTask, java_table: Any) -> Any:
    actions = spark._jvm.org.apache.iceberg.spark.actions.SparkActions
    action = actions.get(spark._jsparkSession).rewriteManifests(java_table).specId(task.spec_id)
    if task.sort_by:
        action = action.sortBy(list(task.sort_by))
    action = action.option("use-caching", "false")
    for key, value in task.summary().items():
        action = action.snapshotProperty(key, value)
    return action
