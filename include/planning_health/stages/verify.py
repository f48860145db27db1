"""Step: compares two snapshots of a table exactly; see :mod:`planning_health.maintenance.verification`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from pyiceberg.table.metadata import TableMetadata

from planning_health.catalogs import load_pyiceberg_catalog
from planning_health.envelope import Envelope
from planning_health.identifiers import TableName
from planning_health.maintenance.history import commits_between, compare_history, removed_files
from planning_health.maintenance.verification import COMPARED_COLUMNS, Check, compare_snapshots
from planning_health.metadata import PlanningMetadata, SnapshotChoice, load
from planning_health.metadata.record import ReadBytes, open_table, reader, record
from planning_health.metadata.snapshot_choice import parent_of_current
from planning_health.planning.fewer_statistics import leaf_columns
from planning_health.run_folder import RunFolder
from planning_health.settings import SettingsDocument
from planning_health.stages.measure import queried_columns

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

KIND = "verification"

_NO_ANCESTOR: Final = Check(
    name="history",
    success=True,
    observed="the earlier snapshot is no known ancestor of the later one: compared as they are",
)


def verify(
    settings: SettingsDocument,
    run_folder: RunFolder,
    table: TableName,
    against: SnapshotChoice | None = None,
    *,
    snapshot: SnapshotChoice | None = None,
    spark: SparkSession | None = None,
) -> Envelope:
    """Compares a snapshot (the current one by default) with an earlier one: files, rows, deletes, sequence numbers.

    What commits between the two added and removed is told, and no difference; see
    :func:`planning_health.maintenance.history.compare_history`. Snapshots of different histories (one was rolled back,
    or those between them have been expired) are compared as they are.

    Args:
        settings: the settings.
        run_folder: where recordings and the result go.
        table: the table.
        against: the earlier snapshot; the later one's parent, which must be the current one then, without it.
        snapshot: the later one.
        spark: with a session, executors read the manifests; without one, this process does through PyIceberg.

    Returns:
        The envelope; status ``failed`` with the differences when the snapshots do not hold the same.

    Raises:
        InputError: when the table or a snapshot does not exist.
        NotMeasurableError: when a manifest cannot be read, naming it.
    """
    metadata, read, record = _opened(settings, run_folder, table, spark)
    earlier, _ = (against or parent_of_current(metadata)).resolve(metadata)
    before, after = record("before", SnapshotChoice(snapshot_id=earlier)), record("after", snapshot or SnapshotChoice())
    commits = commits_between(metadata, before.info.snapshot_id, after.info.snapshot_id)
    if commits is None:
        report = compare_snapshots(before, after).with_check(_NO_ANCESTOR)
    else:
        report = compare_history(before, after, commits, lambda snapshot_id: removed_files(metadata, snapshot_id, read))
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
        data={"against": before.info.snapshot_id, **report.as_json()},
    )


Recorder = Callable[[str, SnapshotChoice], PlanningMetadata]


def _opened(
    settings: SettingsDocument, run_folder: RunFolder, table: TableName, spark: SparkSession | None
) -> tuple[TableMetadata, ReadBytes, Recorder]:
    """The table's metadata, what reads its files, and what records one of its snapshots under a name."""
    if spark is None:
        opened = open_table(load_pyiceberg_catalog(settings, table.catalog), table)
        metadata, read = opened.metadata, reader(opened.io)
        columns = _compared_columns(settings, table, metadata)

        def record_here(_: str, choice: SnapshotChoice) -> PlanningMetadata:
            return record(table, metadata, opened.metadata_location, read, queried=columns, choice=choice)

        return metadata, read, record_here
    from planning_health.metadata import record_spark

    java_table = record_spark.load_java_table(spark, table)
    metadata = record_spark.table_metadata(spark, java_table)
    columns = _compared_columns(settings, table, metadata)

    def record_there(name: str, choice: SnapshotChoice) -> PlanningMetadata:
        folder = f"{run_folder.url}/{run_folder.table_path(table)}/verification/{name}"
        record_spark.record_with_spark(spark, table, folder, queried=columns, choice=choice)
        return load(folder)

    return metadata, record_spark.java_reader(java_table), record_there


def _compared_columns(settings: SettingsDocument, table: TableName, metadata: TableMetadata) -> frozenset[str]:
    """The columns whose statistics are compared file by file: those of the queries, and the first of all others."""
    schema = metadata.schema()
    first = [schema.find_column_name(field_id) for field_id in list(leaf_columns(schema))[:COMPARED_COLUMNS]]
    return queried_columns(settings, table) | {name for name in first if name}
