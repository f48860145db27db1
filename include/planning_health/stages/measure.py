"""Step: records the planning metadata of every table, in one Spark application or without Spark.

Small tables wait for Spark more than they use it, so that several are recorded at once. What is timed, Iceberg's own
planning, runs alone.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import TYPE_CHECKING, Any, Final

from planning_health.advice.observed import observed_columns
from planning_health.catalogs import load_pyiceberg_catalog
from planning_health.envelope import Envelope
from planning_health.errors import InputError, PlanningHealthError
from planning_health.identifiers import TableName
from planning_health.metadata import PlanningMetadata, load, record_with_pyiceberg, save
from planning_health.metadata.planning_times import measure_planning
from planning_health.planning.expressions import to_iceberg_json
from planning_health.planning.predicates import columns_in
from planning_health.planning.report import plan_where
from planning_health.planning.scan import ScanPlanner
from planning_health.progress import progress
from planning_health.redaction import first_line
from planning_health.run_folder import RunFolder
from planning_health.settings import SettingsDocument
from planning_health.stages.observed_workload import record_observations
from planning_health.stages.queries import configured_queries, queries_of
from planning_health.stages.table_stage import MEASURE, MEASUREMENT

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

logger = logging.getLogger(__name__)

KIND = MEASURE

MOST_AT_ONCE: Final = 8
"""Tables recorded at the same time: more gain little, and their planning is timed later after their recording."""


def measure(
    settings: SettingsDocument,
    run_folder: RunFolder,
    tables: Sequence[TableName],
    *,
    spark: SparkSession | None = None,
) -> Envelope:
    """Records each table into the run folder; a table that cannot be measured is reported and passed over.

    Args:
        settings: the settings; their queries, event logs and scan reports name the columns whose statistics are
            recorded.
        run_folder: where the recordings go.
        tables: what to measure.
        spark: with a session, executors read the manifests and Iceberg's own planning of the queries is timed;
            without one, this process reads through PyIceberg.

    Returns:
        The run's envelope: status ``failed`` only when every table failed that may not, with the failures in the data.
    """
    failed: dict[str, str] = {}
    observed = record_observations(settings, run_folder)
    at_once = _at_once(spark)
    with ThreadPoolExecutor(at_once) as pool:
        for start in range(0, len(tables), at_once):
            recordings = [
                (table, pool.submit(_record, settings, run_folder, table, spark, observed_columns(table, observed)))
                for table in tables[start : start + at_once]
            ]
            wait(recording for _, recording in recordings)
            for number, (table, recording) in enumerate(recordings, start=start + 1):
                envelope = _measure_one(settings, run_folder, table, spark, recording)
                progress(f"measured {table}: {envelope.reason or envelope.status}", number, len(tables))
                if envelope.reason:
                    failed[str(table)] = envelope.reason
    all_failed = len(failed) == len(tables) and not all(map(settings.tolerates_failure, tables))
    return run_folder.write_result(
        KIND,
        status="failed" if all_failed else "ok",
        reason=f"no table could be measured; first: {next(iter(failed.values()))}" if all_failed else None,
        headline={"tables": len(tables), "tables_failed": len(failed)},
        data={"tables": [str(table) for table in tables], "failed": failed},
    )


def queried_columns(settings: SettingsDocument, table: TableName, wheres: Sequence[str] = ()) -> frozenset[str]:
    """The columns of the table's configured queries and of further predicates."""
    configured = [query.where for query in configured_queries(settings, table)]
    return frozenset[str]().union(*(columns_in(where) for where in [*configured, *wheres]))


def _at_once(spark: SparkSession | None) -> int:
    """As many tables as the application has cores; without Spark one: this process holds all that it reads."""
    return 1 if spark is None else max(1, min(spark.sparkContext.defaultParallelism, MOST_AT_ONCE))


def _record(
    settings: SettingsDocument,
    run_folder: RunFolder,
    table: TableName,
    spark: SparkSession | None,
    observed: frozenset[str],
) -> None:
    rule = settings.rule_for(table)
    queried = queried_columns(settings, table) | set(rule.record_columns if rule else ()) | observed
    folder = run_folder.metadata_url(table)
    if spark is None:
        save(record_with_pyiceberg(load_pyiceberg_catalog(settings, table.catalog), table, queried=queried), folder)
        return
    from planning_health.metadata.record_spark import record_with_spark

    record_with_spark(spark, table, folder, queried=queried)


def _planning_times(
    settings: SettingsDocument, metadata: PlanningMetadata, spark: SparkSession | None
) -> list[dict[str, Any]]:
    """How long Iceberg itself plans the table's queries; none without Spark, or once the table has moved on."""
    if spark is None or metadata.info.snapshot_id is None:
        return []
    from planning_health.metadata.record_spark import load_java_table

    name = metadata.info.name
    try:
        java_table = load_java_table(spark, name)
        if java_table.currentSnapshot().snapshotId() != metadata.info.snapshot_id:
            return []
        planner = ScanPlanner(metadata)
        filters = [
            (query.name, to_iceberg_json(plan_where(planner, query.where).filter))
            for query in queries_of(settings, name, planner).planned
        ]
        return [time.as_json() for time in measure_planning(spark, java_table, filters)]
    except Exception as error:  # a time that could not be taken is not measured; the recording stands
        logger.warning("planning times of %s were not measured: %s", name, first_line(error))
        return []


def _measure_one(
    settings: SettingsDocument,
    run_folder: RunFolder,
    table: TableName,
    spark: SparkSession | None,
    recording: Future[None],
) -> Envelope:
    """Writes the measurement of a table whose recording has ended."""
    try:
        recording.result()
        metadata = load(run_folder.metadata_url(table))
    except PlanningHealthError as error:
        bad_input = {"bad_input": isinstance(error, InputError)}
        return run_folder.write_result(MEASUREMENT, table=table, status="failed", reason=str(error), data=bad_input)
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
            "planning_times": _planning_times(settings, metadata, spark),
            "recorded_columns": sorted(
                info.schema.find_column_name(field_id) or str(field_id) for field_id in info.recorded_field_ids
            ),
        },
    )
