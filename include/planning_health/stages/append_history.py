"""Step: appends the run's values to the history table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, Final

from planning_health import __version__
from planning_health.envelope import Envelope, ResultFile
from planning_health.health.catalogue import SIGNALS
from planning_health.health.history import HistoryRow, append_rows, history_table, namespace_text
from planning_health.identifiers import TableName
from planning_health.run_folder import RunFolder
from planning_health.settings import SettingsDocument
from planning_health.stages.table_stage import MEASUREMENT

KIND: Final = "history"

STATE: Final = "state"
"""Signal of a table's state: 0 ok, 1 warning, 2 critical; null for a table that was not measured or diagnosed."""

_STATES: Final = {"ok": 0, "warning": 1, "critical": 2}

Value = tuple[str, str, str, float | None, str, str]
"""Scope, scope key, signal, value, unit, level."""


def append_history(settings: SettingsDocument, run_folder: RunFolder) -> Envelope:
    """Writes the values of all tables of the run, replacing what an earlier attempt of the same run wrote.

    Of each table: its state, the signals of the diagnosis, what planning of each query opens, and what an action
    changed. Without a configured history the step is skipped.

    Raises:
        InputError: when the history's catalog needs Spark or cannot be reached.
        WorkFailedError: when the history table cannot be written.
    """
    if settings.history is None:
        return run_folder.write_result(KIND, status="skipped", reason="no history table is configured")
    rows = [row for table in run_folder.tables() for row in _rows(run_folder, table)]
    expired = append_rows(settings, run_folder.run_id, rows)
    tables = {(row.catalog, row.namespace, row.table_name) for row in rows}
    return run_folder.write_result(
        KIND,
        headline={"rows": len(rows), "tables": len(tables)},
        data={"table": str(history_table(settings)), "rows": len(rows), "old_months_dropped": expired},
    )


def _rows(run_folder: RunFolder, table: TableName) -> Iterator[HistoryRow]:
    measurement = run_folder.read_result(MEASUREMENT, table)
    if measurement is None:
        return
    for scope, scope_key, signal, value, unit, level in _values(run_folder, table):
        yield HistoryRow(
            run_id=run_folder.run_id,
            measured_at=_measured_at(measurement),
            catalog=table.catalog,
            namespace=namespace_text(table),
            table_name=table.name,
            table_uuid=measurement.table_uuid,
            snapshot_id=measurement.snapshot_id,
            scope=scope,
            scope_key=scope_key,
            signal=signal,
            value=None if value is None else float(value),
            unit=unit,
            level=level,
            product_version=__version__,
        )


def _measured_at(measurement: ResultFile) -> datetime:
    """When the recording was made; for a failed one, when it failed."""
    text = (measurement.data or {}).get("measured_at") or measurement.created_at
    moment = datetime.fromisoformat(text)
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _values(run_folder: RunFolder, table: TableName) -> Iterator[Value]:
    health = _data(run_folder, "health", table)
    state = health.get("state")
    yield "table", "", STATE, _STATES.get(str(state)), "", str(state or "not_measured")
    for item in health.get("signals", ()):
        yield item["scope"], item["scope_key"], item["signal"], item["value"], item["unit"], item["level"]
    for predicate in _data(run_folder, "planning", table).get("predicates", ()):
        yield from _query_values(predicate)
    action = _data(run_folder, "action", table)
    for moment in ("before", "after"):
        for name, value in (action.get(moment) or {}).items():
            if isinstance(value, int | float) and not isinstance(value, bool):
                yield "action", str(action.get("state", "")), f"{name}_{moment}", value, "", "ok"


def _query_values(predicate: Mapping[str, Any]) -> Iterator[Value]:
    name = str(predicate.get("name") or predicate.get("where"))
    scanned = [(predicate.get(part) or {}).get("scanned") for part in ("data_manifests", "delete_manifests")]
    opened = sum(count for count in scanned if count is not None) if any(c is not None for c in scanned) else None
    for signal, value in (
        ("manifests_opened", opened),
        ("files_planned", (predicate.get("data_files") or {}).get("result")),
    ):
        yield "query", name, signal, value, SIGNALS[signal].unit, "ok" if value is not None else "not_measured"


def _data(run_folder: RunFolder, kind: str, table: TableName) -> dict[str, Any]:
    """A result's data; empty when the step left none or failed."""
    result = run_folder.read_result(kind, table)
    return result.data if result is not None and result.status == "ok" and isinstance(result.data, dict) else {}
