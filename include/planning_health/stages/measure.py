"""Step: records the planning metadata of every table, in one Spark application or without Spark."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from planning_health.catalogs import load_pyiceberg_catalog
from planning_health.catalogs.pyiceberg_catalog import first_line
from planning_health.envelope import Envelope
from planning_health.errors import PlanningHealthError
from planning_health.identifiers import TableName
from planning_health.metadata import PlanningMetadata, SnapshotChoice, load, record_with_pyiceberg, save
from planning_health.metadata.recorded_columns import columns_in
from planning_health.run_folder import RunFolder
from planning_health.settings import SettingsDocument
from planning_health.stages.table_stage import MEASUREMENT

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

logger = logging.getLogger(__name__)

KIND = "measure"

Recorder = Callable[[TableName], PlanningMetadata]


def measure(
    settings: SettingsDocument,
    run_folder: RunFolder,
    tables: Sequence[TableName],
    *,
    spark: SparkSession | None = None,
    wheres: Sequence[str] = (),
    choice: SnapshotChoice | None = None,
) -> Envelope:
    """Records each table into the run folder; a table that cannot be measured is reported and passed over.

    Args:
        settings: the settings; their queries name the columns whose statistics are recorded.
        run_folder: where the recordings go.
        tables: what to measure.
        spark: with a session, executors read the manifests; without one, this process does through PyIceberg.
        wheres: predicates beside the configured ones whose columns are recorded too.
        choice: another snapshot than the current one.

    Returns:
        The run's envelope: status ``failed`` only when every table failed, with the failures in the data.
    """

    def record(table: TableName) -> PlanningMetadata:
        queried = queried_columns(settings, table, wheres)
        folder = run_folder.metadata_url(table)
        if spark is None:
            catalog = load_pyiceberg_catalog(settings, table.catalog)
            metadata = record_with_pyiceberg(catalog, table, queried=queried, choice=choice)
            save(metadata, folder)
            return metadata
        from planning_health.metadata.record_spark import record_with_spark

        record_with_spark(spark, table, folder, queried=queried, choice=choice)
        return load(folder)

    failed: dict[str, str] = {}
    for number, table in enumerate(tables, start=1):
        envelope = _measure_one(run_folder, table, record)
        logger.info("measured %s (%d of %d): %s", table, number, len(tables), envelope.reason or envelope.status)
        if envelope.reason:
            failed[str(table)] = envelope.reason
    all_failed = bool(tables) and len(failed) == len(tables)
    return run_folder.write_result(
        KIND,
        status="failed" if all_failed else "ok",
        reason=f"no table could be measured; first: {next(iter(failed.values()))}" if all_failed else None,
        headline={"tables": len(tables), "tables_failed": len(failed)},
        data={"tables": [str(table) for table in tables], "failed": failed},
    )


def queried_columns(settings: SettingsDocument, table: TableName, wheres: Sequence[str] = ()) -> frozenset[str]:
    """The columns of the table's configured queries and of further predicates."""
    rule = settings.rule_for(table)
    configured = [query.where for query in rule.queries] if rule else []
    return frozenset[str]().union(*(columns_in(where) for where in [*configured, *wheres]))


def _measure_one(run_folder: RunFolder, table: TableName, record: Recorder) -> Envelope:
    try:
        metadata = record(table)
    except PlanningHealthError as error:
        return run_folder.write_result(MEASUREMENT, table=table, status="failed", reason=str(error))
    except Exception as error:  # an engine's surprise concerns this table only
        logger.exception("measuring %s failed", table)
        reason = f"{type(error).__name__}: {first_line(error)}"
        return run_folder.write_result(MEASUREMENT, table=table, status="failed", reason=reason)
    info = metadata.info
    return run_folder.write_result(
        MEASUREMENT,
        table=table,
        table_uuid=info.table_uuid,
        snapshot_id=info.snapshot_id,
        headline={
            "manifests": metadata.manifests.num_rows,
            "data_file_entries": metadata.data_files.num_rows,
            "delete_file_entries": metadata.delete_files.num_rows,
            "record_ms": round(info.record_ms, 1),
        },
        data={
            "recorder": info.recorder,
            "format_version": info.format_version,
            "measured_at": info.measured_at,
            "metadata_location": info.metadata_location,
            "recorded_columns": sorted(
                info.schema.find_column_name(field_id) or str(field_id) for field_id in info.recorded_field_ids
            ),
        },
    )
