"""Step: validates every measured table with Great Expectations.

Each table's outcome is a result of its own: the steps of a table need only that, and there may be hundreds of tables.
"""

from __future__ import annotations

import logging
from typing import Any, Final

from planning_health.envelope import Envelope, ResultFile
from planning_health.errors import PlanningHealthError
from planning_health.health.expectations import Validator
from planning_health.health.thresholds import resolve_thresholds
from planning_health.identifiers import TableName
from planning_health.metadata import load
from planning_health.run_folder import RunFolder
from planning_health.settings import SettingsDocument
from planning_health.stages.measure import queried_columns
from planning_health.stages.table_stage import MEASUREMENT, VALIDATION

logger = logging.getLogger(__name__)

KIND: Final = VALIDATION


def validate(settings: SettingsDocument, run_folder: RunFolder) -> Envelope:
    """Writes the ``validation`` result of each table that was measured, and the run's with each table's verdict.

    A table whose integrity suite fails is marked ``blocking``; so is one whose recording cannot be read. The health
    suite never blocks.

    Raises:
        WorkFailedError: when Great Expectations is not installed.
    """
    measured = [(table, found) for table in run_folder.tables() if (found := _measurement(run_folder, table))]
    validator = Validator() if measured else None
    tables = {
        str(table): _validate_one(settings, run_folder, table, measurement, validator)
        for table, measurement in measured
        if validator
    }
    blocked = [name for name, outcome in tables.items() if outcome["blocking"]]
    return run_folder.write_result(
        KIND,
        headline={
            "tables": len(tables),
            "tables_blocked": len(blocked),
            "tables_unhealthy": sum(not outcome["success"] for outcome in tables.values()),
        },
        data={"tables": tables},
    )


def _measurement(run_folder: RunFolder, table: TableName) -> ResultFile | None:
    """The table's measurement, if it succeeded."""
    measurement = run_folder.read_result(MEASUREMENT, table)
    return measurement if measurement is not None and measurement.status == "ok" else None


def _validate_one(
    settings: SettingsDocument, run_folder: RunFolder, table: TableName, measurement: ResultFile, validator: Validator
) -> dict[str, Any]:
    """Writes the table's result; what the run's tells of it."""
    outcome = _outcome(settings, run_folder, table, validator)
    run_folder.write_result(
        KIND, table=table, table_uuid=measurement.table_uuid, snapshot_id=measurement.snapshot_id, data=outcome
    )
    return {key: outcome[key] for key in ("success", "blocking", "reason")}


def _outcome(
    settings: SettingsDocument, run_folder: RunFolder, table: TableName, validator: Validator
) -> dict[str, Any]:
    thresholds = resolve_thresholds(settings.rule_for(table))
    try:
        metadata = load(run_folder.metadata_url(table))
        columns = sorted(queried_columns(settings, table))
        return validator.validate(metadata, thresholds, columns).as_json()
    except PlanningHealthError as error:
        reason = str(error)
    except Exception as error:  # one table's surprise must not hide the others' results
        logger.exception("validation of %s failed", table)
        reason = f"{type(error).__name__}: {error}"
    return {"success": False, "blocking": True, "reason": reason, "expectations": []}
