"""The report as one table for the terminal, as the demonstration and the command line end with it."""

from __future__ import annotations

from typing import Final

from rich.table import Table
from rich.text import Text

from planning_health.reports.model import Report, TableReport
from planning_health.wording import percentage, plain_number, quantity, short_unit, state_name

_STYLES: Final = {
    "critical": "bold red",
    "warning": "yellow",
    "ok": "green",
    "failed": "bold magenta",
    "not_measured": "dim",
}


def terminal_summary(report: Report) -> Table:
    """Table, state, worst finding, and before → after of the last action (or what is predicted)."""
    table = Table(title="Planning health", title_justify="left", show_edge=False, pad_edge=False)
    table.add_column("Table", overflow="fold")
    table.add_column("State", no_wrap=True)
    table.add_column("Worst finding", overflow="fold", ratio=1)
    table.add_column("Before → after", overflow="fold")
    for row in report.tables:
        table.add_row(
            Text(row.table),
            Text(state_name(row.state), style=_STYLES[row.state]),
            Text(_worst(row)),
            Text(_effect(row)),
        )
    return table


def terminal_predictions(report: Report) -> Table | None:
    """What was predicted for each action that was done, beside what came true; ``None`` without any."""
    table = Table(title="Predictions and facts", title_justify="left", show_edge=False, pad_edge=False)
    table.add_column("Table", overflow="fold")
    table.add_column("Number", overflow="fold", ratio=1)
    for title in ("Predicted", "Real", "Off by"):
        table.add_column(title, justify="right", no_wrap=True)
    for action in report.actions:
        for row in action.effect if action.succeeded else ():
            if row.off is not None:
                unit = short_unit(row.unit)
                numbers = quantity(row.predicted, unit), quantity(row.after, unit), percentage(row.off)
                table.add_row(Text(action.table), Text(row.label), *map(Text, numbers))
    return table if table.rows else None


def _worst(table: TableReport) -> str:
    if table.state == "failed":
        return table.reason or ""
    urgent = [finding for finding in table.findings if finding.level in ("critical", "warning")]
    return f"{urgent[0].title}. {table.planning_told}".rstrip(". ") if urgent else "–"


def _effect(table: TableReport) -> str:
    for action in table.actions:
        measured = [row for row in action.effect if row.before is not None and row.after is not None]
        overlap = [row for row in measured if row.key.startswith("overlap.")]
        chosen = [row for row in measured if row.key == "manifests"] + overlap[:1]
        if action.succeeded and chosen:
            return "; ".join(
                f"{_name(row.key)} {plain_number(round(row.before or 0, 1))} → {plain_number(round(row.after or 0, 1))}"
                for row in chosen
            )
        if not action.succeeded:
            return state_name(action.state)
    return "–"


def _name(key: str) -> str:
    return "manifests" if key == "manifests" else f"depth of {key.split('.', 2)[2]}"
