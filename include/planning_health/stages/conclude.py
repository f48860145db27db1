"""Step: the end of a run. Collects what failed, and says whether that may pass."""

from __future__ import annotations

from typing import Final

from planning_health.envelope import Envelope
from planning_health.identifiers import TableName
from planning_health.run_folder import RunFolder
from planning_health.settings import SettingsDocument
from planning_health.stages.table_stage import MEASUREMENT

KIND: Final = "conclusion"

TABLE_KINDS: Final = (MEASUREMENT, "health", "planning", "assignment", "plan_tasks", "proposal", "action")
RUN_KINDS: Final = ("discovery", "measure", "validation", "history", "report")


def conclude(settings: SettingsDocument, run_folder: RunFolder, *, required: tuple[str, ...] = ()) -> Envelope:
    """Looks through the run's results for failures.

    A table's failure passes when its rule has ``tolerate_failure``; the first reason of each table is kept.

    Args:
        settings: the run's settings.
        run_folder: the run's folder.
        required: run-level kinds that must be there, because the step that writes them may not have run at all.

    Returns:
        Status ``failed`` with the reasons in one line when something failed that is not tolerated.
    """
    failed: dict[str, str] = {}
    tolerated: dict[str, str] = {}
    for table in run_folder.tables():
        if reason := _first_failure(run_folder, table):
            rule = settings.rule_for(table)
            (tolerated if rule and rule.tolerate_failure else failed)[str(table)] = reason
    steps = _failed_steps(run_folder, required)
    problems = [f"{name}: {reason}" for name, reason in {**steps, **failed}.items()]
    return run_folder.write_result(
        KIND,
        status="failed" if problems else "ok",
        reason="; ".join(problems) or None,
        headline={
            "tables": len(run_folder.tables()),
            "tables_failed": len(failed),
            "tables_failed_tolerated": len(tolerated),
            "steps_failed": len(steps),
        },
        data={"failed": failed, "tolerated": tolerated, "steps": steps},
    )


def _first_failure(run_folder: RunFolder, table: TableName) -> str | None:
    for kind in TABLE_KINDS:
        result = run_folder.read_result(kind, table)
        if result is not None and result.status == "failed":
            return f"{kind}: {result.reason}"
    return None


def _failed_steps(run_folder: RunFolder, required: tuple[str, ...]) -> dict[str, str]:
    failed: dict[str, str] = {}
    for kind in RUN_KINDS:
        result = run_folder.read_result(kind)
        if result is None and kind in required:
            failed[kind] = "the step left no result"
        elif result is not None and result.status == "failed":
            failed[kind] = result.reason or "failed"
    return failed
