"""Step: runs an approved maintenance request on a table, verifies it and measures again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from planning_health.advice.observed import observed_columns
from planning_health.envelope import Envelope, Headline
from planning_health.errors import NotMeasurableError
from planning_health.identifiers import TableName
from planning_health.maintenance.action import Action, ActionResult
from planning_health.maintenance.request import MaintenanceRequest
from planning_health.metadata import PlanningMetadata, load
from planning_health.run_folder import RunFolder
from planning_health.settings import SettingsDocument
from planning_health.stages.measure import queried_columns
from planning_health.stages.observed_workload import known_queries, recorded_observations, workload_of
from planning_health.stages.queries import configured_queries
from planning_health.stages.table_stage import MEASUREMENT

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

KIND = "action"


def act(
    settings: SettingsDocument,
    run_folder: RunFolder,
    table: TableName,
    request: MaintenanceRequest,
    spark: SparkSession,
) -> Envelope:
    """Does what the request says, unless it is a dry run, and reports each of its steps.

    Started again under the same run id it rewrites nothing twice. The envelope's status is ``failed`` with the reason
    when the state is ``refused``, ``conflict``, ``failed`` or ``verification_failed``.
    """
    measured, queries = _measured(run_folder, table), configured_queries(settings, table)
    observed = recorded_observations(run_folder)
    if measured:
        queries = known_queries(workload_of(measured, observed, queries), measured.info.schema, queries)
    action = Action(
        settings,
        run_folder,
        table,
        request,
        spark,
        queries=queries,
        queried=queried_columns(settings, table) | observed_columns(table, observed),
        measured=measured,
    )
    result = action.run()
    before, after = result.before, result.after
    return run_folder.write_result(
        KIND,
        table=table,
        table_uuid=before.info.table_uuid if before else None,
        snapshot_id=after.info.snapshot_id if after else before.info.snapshot_id if before else None,
        status="ok" if result.succeeded else "failed",
        reason=result.reason,
        headline=_headline(result),
        data=result.as_json(),
    )


def _measured(run_folder: RunFolder, table: TableName) -> PlanningMetadata | None:
    measurement = run_folder.read_result(MEASUREMENT, table)
    if measurement is None or measurement.status != "ok":
        return None
    try:
        return load(run_folder.metadata_url(table))
    except NotMeasurableError:  # the action measures by itself
        return None


def _headline(result: ActionResult) -> Headline:
    counts: Headline = {"snapshots": len(result.snapshots), "properties_changed": len(result.property_changes)}
    states = {"before": result.before, "predicted": result.predicted, "after": result.after}
    for name, metadata in states.items():
        counts[f"manifests_{name}"] = len(metadata.manifests) if metadata else None
        counts[f"metadata_bytes_{name}"] = sum(metadata.manifests["length"].to_pylist()) if metadata else None
    return counts
