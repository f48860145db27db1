"""Step: the end of a run. Collects what failed, and says whether that may pass."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from planning_health.envelope import Envelope
from planning_health.identifiers import TableName
from planning_health.run_folder import RunFolder
from planning_health.settings import SettingsDocument
from planning_health.stages.table_stage import MEASUREMENT, VALIDATION

KIND: Final = "conclusion"

TABLE_KINDS: Final = (MEASUREMENT, "health", "planning", "assignment", "plan_tasks", "what_if", "proposal", "action")
RUN_KINDS: Final = ("discovery", "measure", VALIDATION, "history", "report")


def conclude(
    settings: SettingsDocument,
    run_folder: RunFolder,
    *,
    failed_tasks: Mapping[str, str | None] | None = None,
    expected: Sequence[str] = (),
) -> Envelope:
    """Looks through the run's results for failures.

    A table's failure passes when its rule has ``tolerate_failure``; the first reason of each table is kept.

    Args:
        settings: the run's settings.
        run_folder: the run's folder.
        failed_tasks: tasks of the whole run that the scheduler saw fail, since a process that died leaves no result,
            with the reason where it is known.
        expected: kinds of results that each measured table must have, for the same reason.

    Returns:
        Status ``failed`` with the reasons in one line when something failed that is not tolerated.
    """
    failed: dict[str, str] = {}
    tolerated: dict[str, str] = {}
    blocked = _blocked_tables(run_folder)
    for table in run_folder.tables():
        reason = _first_failure(run_folder, table, expected)
        if reason is None and str(table) in blocked:
            reason = f"{VALIDATION}: the recording failed its integrity checks"
        if reason:
            (tolerated if settings.tolerates_failure(table) else failed)[str(table)] = reason
    seen = {task: reason or "the task failed: see its log" for task, reason in (failed_tasks or {}).items()}
    steps = seen | _failed_steps(run_folder)
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


def _first_failure(run_folder: RunFolder, table: TableName, expected: Sequence[str]) -> str | None:
    for kind in TABLE_KINDS:
        result = run_folder.read_result(kind, table)
        if result is None and kind in (MEASUREMENT, *expected):
            return f"{kind}: the step left no result"
        if result is not None and result.status == "failed":
            return f"{kind}: {result.reason}"
    return None


def _blocked_tables(run_folder: RunFolder) -> set[str]:
    validation = run_folder.read_result(VALIDATION)
    if validation is None or not validation.data:
        return set()
    return {name for name, outcome in validation.data["tables"].items() if outcome["blocking"]}


def _failed_steps(run_folder: RunFolder) -> dict[str, str]:
    results = {kind: run_folder.read_result(kind) for kind in RUN_KINDS}
    return {
        kind: result.reason or "failed"
        for kind, result in results.items()
        if result is not None and result.status == "failed"
    }
