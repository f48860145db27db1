"""Step: undoes what an earlier maintenance run did to a table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from planning_health.envelope import Envelope
from planning_health.errors import PlanningHealthError
from planning_health.identifiers import TableName
from planning_health.maintenance.java_table import current_snapshot_id
from planning_health.maintenance.lease import lease
from planning_health.maintenance.properties import PROPERTY_CHANGES, recorded_changes
from planning_health.maintenance.rollback import plan_rollback, roll_back
from planning_health.metadata.record_spark import load_java_table
from planning_health.run_folder import RunFolder
from planning_health.settings import SettingsDocument
from planning_health.stages.act import KIND as ACTION
from planning_health.stages.propose import KIND as PROPOSAL

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

KIND = "rollback"


def tables_to_undo(run_folder: RunFolder) -> list[TableName]:
    """The tables that a run acted on, or may have acted on before it was killed.

    A killed run has no action result. Its property changes are kept in a file that is written before they are made, and
    its proposal tells whether it was to be run; whether it left anything is for the table's history to say.
    """
    return [table for table in run_folder.tables() if _may_have_acted(run_folder, table)]


def _may_have_acted(run_folder: RunFolder, table: TableName) -> bool:
    if any(run_folder.read_result(kind, table) is not None for kind in (ACTION, PROPERTY_CHANGES)):
        return True
    proposal = run_folder.read_result(PROPOSAL, table)
    return proposal is not None and proposal.status == "ok" and not proposal.data["request"]["dry_run"]


def rollback(settings: SettingsDocument, run_folder: RunFolder, table: TableName, spark: SparkSession) -> Envelope:
    """Sets the table back to where it was before the run, properties included.

    Goes by the run's own snapshots in the table's history and by the property values that it kept, which a run that was
    killed leaves too.

    Args:
        settings: the settings.
        run_folder: the folder of the run to undo.
        table: the table.
        spark: a classic Spark session.

    Returns:
        The envelope; status ``failed`` with the reason when somebody has changed the table since, ``skipped`` when the
        run left nothing to undo.
    """
    try:
        with lease(settings.home, table, run_folder.run_id, spark.sparkContext.applicationId):
            changes = recorded_changes(run_folder, table)
            java_table = load_java_table(spark, table)
            plan = plan_rollback(java_table, run_folder.run_id, changes)
            roll_back(spark, java_table, table, plan)
            java_table = load_java_table(spark, table)
            table_uuid, current = str(java_table.uuid()), current_snapshot_id(java_table)
    except PlanningHealthError as error:
        return run_folder.write_result(KIND, table=table, status="failed", reason=str(error))
    nothing = plan.snapshot_id is None and not plan.properties
    return run_folder.write_result(
        KIND,
        table=table,
        table_uuid=table_uuid,
        snapshot_id=current,
        status="skipped" if nothing else "ok",
        reason="the run left nothing to undo" if nothing else None,
        headline={"properties_set_back": len(plan.properties)},
        data={"snapshot_id": plan.snapshot_id, "properties": [vars(change) for change in plan.properties]},
    )
