"""What changed since the previous report."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from planning_health.reports.model import (
    STATE_ORDER,
    Changes,
    Direction,
    FindingChange,
    Improvement,
    NumberChange,
    Report,
    StateChange,
    TableReport,
)
from planning_health.wording import change, state_name

_LOWER_IS_BETTER: Final = frozenset(
    {"manifests", "metadata_bytes", "delete_files", "overlap_mean", "overlap_worst", "deleted_ratio"}
)
_MOVED: Final = 0.1
"""A number has moved when it differs by a tenth."""


def changes_since(previous: Report, tables: Sequence[TableReport]) -> Changes:
    """Compares the tables with those of the previous report.

    A table that was or is not measured has no new or resolved findings: what is unknown did not change.
    """
    before = {table.table: table for table in previous.tables}
    now = {table.table: table for table in tables}
    pairs = [(before[name], table) for name, table in now.items() if name in before]
    diagnosed = [(old, new) for old, new in pairs if _diagnosed(old) and _diagnosed(new)]
    return Changes(
        states=[_state_change(old, new) for old, new in pairs if old.state != new.state],
        new_findings=[found for old, new in diagnosed for found in _only_in(new, old, new)],
        resolved_findings=[found for old, new in diagnosed for found in _only_in(old, new, new)],
        numbers=[moved for old, new in pairs for moved in _moved(old, new)],
        new_tables=sorted(now.keys() - before.keys()),
        gone_tables=sorted(before.keys() - now.keys()),
    )


def _diagnosed(table: TableReport) -> bool:
    return table.state in ("critical", "warning", "ok")


def _state_change(old: TableReport, new: TableReport) -> StateChange:
    direction: Direction = "neutral"
    if _diagnosed(old) and _diagnosed(new):
        direction = "better" if STATE_ORDER[new.state] > STATE_ORDER[old.state] else "worse"
    elif new.state == "failed":
        direction = "worse"
    return StateChange(table=new.table, anchor=new.anchor, before=old.state, after=new.state, direction=direction)


def _only_in(table: TableReport, other: TableReport, shown: TableReport) -> Iterator[FindingChange]:
    known = {(finding.id, finding.scope_key) for finding in other.findings}
    for finding in table.findings:
        if (finding.id, finding.scope_key) not in known and finding.level in ("critical", "warning"):
            yield FindingChange(table=shown.table, anchor=shown.anchor, title=finding.title, level=finding.level)


def _moved(old: TableReport, new: TableReport) -> Iterator[NumberChange]:
    for number in new.numbers:
        former = old.number(number.key)
        if former is None or former.value is None or number.value is None or former.value == number.value:
            continue
        if abs(number.value - former.value) < _MOVED * max(abs(former.value), abs(number.value)):
            continue
        direction: Direction = "neutral"
        if number.key in _LOWER_IS_BETTER:
            direction = "better" if number.value < former.value else "worse"
        yield NumberChange(
            table=new.table,
            anchor=new.anchor,
            label=number.label,
            unit=number.unit,
            before=former.value,
            after=number.value,
            direction=direction,
        )


def improvements(tables: Sequence[TableReport], changes: Changes) -> list[Improvement]:
    """What got better: repairs that worked and last, better states, findings that are gone; one line a table."""
    told: dict[str, list[str]] = {}
    anchors = {table.table: table.anchor for table in tables}
    for table in tables:
        for action in reversed(table.actions):
            if action.succeeded and not (table.upkeep and table.upkeep.lost):
                told.setdefault(table.table, []).append(f"{action.title}: {action.summary}")
    for state in changes.states:
        if state.direction == "better":
            told.setdefault(state.table, []).append(f"State: {state_name(state.before)} → {state_name(state.after)}")
    for finding in changes.resolved_findings:
        told.setdefault(finding.table, []).append(f"No longer: {finding.title}")
    for moved in changes.numbers:
        if moved.direction == "better" and moved.table not in told:
            told[moved.table] = [f"{moved.label}: {change(moved.before, moved.after, moved.unit)}"]
    return [Improvement(table=name, anchor=anchors[name], texts=parts) for name, parts in told.items()]
