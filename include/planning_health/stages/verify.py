"""Step: compares two snapshots of a table exactly; see :mod:`planning_health.maintenance.verification`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from planning_health.catalogs import load_pyiceberg_catalog
from planning_health.envelope import Envelope
from planning_health.identifiers import TableName
from planning_health.maintenance.java_table import ACTION_PROPERTY, SPEC_ID_PROPERTY, TRIM
from planning_health.maintenance.trim.metrics_config import trim_rule
from planning_health.maintenance.trim.verification import compare_trimmed
from planning_health.maintenance.verification import VerificationReport, compare_snapshots
from planning_health.metadata import PlanningMetadata, SnapshotChoice, load, record_with_pyiceberg
from planning_health.run_folder import RunFolder
from planning_health.settings import SettingsDocument
from planning_health.stages.measure import queried_columns

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

KIND = "verification"


def verify(
    settings: SettingsDocument,
    run_folder: RunFolder,
    table: TableName,
    against: SnapshotChoice,
    *,
    snapshot: SnapshotChoice | None = None,
    spark: SparkSession | None = None,
) -> Envelope:
    """Compares a snapshot (the current one by default) with an earlier one: files, rows, deletes, sequence numbers.

    Args:
        settings: the settings.
        run_folder: where recordings and the result go.
        table: the table.
        against: the earlier snapshot.
        snapshot: the later one.
        spark: with a session, executors read the manifests; without one, this process does through PyIceberg.

    Returns:
        The envelope; status ``failed`` with the differences when the snapshots do not hold the same.

    Raises:
        InputError: when the table or a snapshot does not exist.
        NotMeasurableError: when a manifest cannot be read, naming it.
    """
    queried = queried_columns(settings, table)

    def record(name: str, choice: SnapshotChoice) -> PlanningMetadata:
        if spark is None:
            catalog = load_pyiceberg_catalog(settings, table.catalog)
            return record_with_pyiceberg(catalog, table, queried=queried, choice=choice)
        from planning_health.metadata.record_spark import record_with_spark

        folder = f"{run_folder.url}/{run_folder.table_path(table)}/verification/{name}"
        record_with_spark(spark, table, folder, queried=queried, choice=choice)
        return load(folder)

    before, after = record("before", against), record("after", snapshot or SnapshotChoice())
    report = _compared(before, after)
    return run_folder.write_result(
        KIND,
        table=table,
        table_uuid=after.info.table_uuid,
        snapshot_id=after.info.snapshot_id,
        status="ok" if report.success else "failed",
        reason=report.failures() or None,
        headline={
            "checks": len(report.checks),
            "checks_failed": sum(not check.success for check in report.checks),
            "manifests": len(after.manifests),
        },
        data=report.as_json(),
    )


def _compared(before: PlanningMetadata, after: PlanningMetadata) -> VerificationReport:
    """A trim and the snapshot right before it are compared by what the metrics properties leave."""
    snapshot = after.info.snapshot
    summary = snapshot.summary.additional_properties if snapshot is not None and snapshot.summary else {}
    if (
        snapshot is None
        or snapshot.parent_snapshot_id != before.info.snapshot_id
        or summary.get(ACTION_PROPERTY) != TRIM
    ):
        return compare_snapshots(before, after)
    rule = trim_rule(before, after.info.properties)
    return compare_trimmed(before, after, int(summary[SPEC_ID_PROPERTY]), rule)
