"""Step: undoes what an earlier maintenance run did to a table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from planning_health.envelope import Envelope
from planning_health.errors import PlanningHealthError
from planning_health.identifiers import TableName
from planning_health.maintenance.java_table import current_snapshot_id
from planning_health.maintenance.lease import lease
from planning_health.maintenance.rollback import plan_rollback, roll_back
from planning_health.metadata.record_spark import load_java_table
from planning_health.run_folder import RunFolder
from planning_health.settings import SettingsDocument
from planning_health.stages.act import KIND as ACTION

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

KIND = "rollback"


def rollback(settings: SettingsDocument, run_folder: RunFolder, table: TableName, spark: SparkSession) -> Envelope:
    """Sets the table back to where it was before the run, properties included.

    Args:
        settings: the settings.
        run_folder: the folder of the run to undo.
        table: the table.
        spark: a classic Spark session.

    Returns:
        The envelope; status ``failed`` with the reason when somebody has changed the table since.

    Raises:
        WorkFailedError: when that run has no action on the table.
    """
    action = run_folder.require_result(ACTION, table)
    try:
        with lease(settings.home, table, run_folder.run_id, spark.sparkContext.applicationId):
            plan = plan_rollback(load_java_table(spark, table), run_folder.run_id, action.data)
            roll_back(spark, table, plan)
            current = current_snapshot_id(load_java_table(spark, table))
    except PlanningHealthError as error:
        return run_folder.write_result(KIND, table=table, status="failed", reason=str(error))
    nothing = plan.snapshot_id is None and not plan.properties
    return run_folder.write_result(
        KIND,
        table=table,
        table_uuid=action.table_uuid,
        snapshot_id=current,
        status="skipped" if nothing else "ok",
        reason="the run left nothing to undo" if nothing else None,
        headline={"properties_set_back": len(plan.properties)},
        data={"snapshot_id": plan.snapshot_id, "properties": [vars(change) for change in plan.properties]},
    )
