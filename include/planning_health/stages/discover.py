"""Step: which tables this run is about; also starts the run's folder."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final

from planning_health.catalogs import discover_tables
from planning_health.envelope import Envelope
from planning_health.errors import InputError
from planning_health.identifiers import TableName
from planning_health.run_folder import RunFolder, results_below
from planning_health.settings import SettingsDocument
from planning_health.stages.run_record import remember_tables, start_run
from planning_health.stages.table_stage import MEASURE

KIND: Final = "discovery"

EARLY: Final = 0.1
"""A table is due this part of its interval early: runs do not begin and end to the minute."""


def discover(
    settings: SettingsDocument,
    run_folder: RunFolder,
    *,
    only_due: bool = False,
    requested: Sequence[str] | None = None,
) -> Envelope:
    """Lists the tables that the settings' patterns include.

    Args:
        settings: the settings.
        run_folder: the run's folder.
        requested: only these tables, whether or not they are due.
        only_due: leave out the tables that an earlier run of the same Dag has measured within their rule's ``every``.

    Returns:
        The envelope; the data names the tables to measure, and those that are not due with when they were measured.

    Raises:
        InputError: when a catalog cannot be reached, or a requested table is not among those that the settings include.
    """
    start_run(settings, run_folder)
    tables = discover_tables(settings)
    remember_tables(settings, tables)
    if requested is not None:
        not_due = _not_requested(tables, requested)
    else:
        not_due = _not_due(settings, run_folder, tables) if only_due else {}
    due = [str(table) for table in tables if str(table) not in not_due]
    return run_folder.write_result(
        KIND, headline={"tables": len(due), "not_due": len(not_due)}, data={"tables": due, "not_due": not_due}
    )


def _not_requested(tables: list[TableName], requested: Sequence[str]) -> dict[str, str]:
    names = {TableName.parse(name) for name in requested}
    if unknown := sorted(names - set(tables)):
        raise InputError(f"table {str(unknown[0])!r} was requested, but is not one that the settings include")
    return {str(table): "not requested" for table in tables if table not in names}


def _not_due(settings: SettingsDocument, run_folder: RunFolder, tables: list[TableName]) -> dict[str, str]:
    """Tables that were measured lately enough, with when."""
    now, measured = datetime.now(UTC), _last_measured(run_folder)
    found: dict[str, str] = {}
    for table in tables:
        rule, last = settings.rule_for(table), measured.get(str(table))
        if rule and rule.every and last and now - last < rule.every * (1 - EARLY):
            found[str(table)] = last.isoformat()
    return found


def _last_measured(run_folder: RunFolder) -> dict[str, datetime]:
    """When runs of the same Dag measured each table last, from one file a run: there may be hundreds of tables."""
    found: dict[str, datetime] = {}
    for run in results_below(run_folder.home, "runs", run_folder.dag_id, "*", f"{MEASURE}.json"):
        at = datetime.fromisoformat(run.created_at)
        for name in set(run.data["tables"]) - set(run.data["failed"]):
            found[name] = max(at, found.get(name, at))
    return found
