"""How fast a repaired table grows back, from what runs measured since, and how often to repair it therefore."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from planning_health.health.properties import MERGE_ENABLED
from planning_health.maintenance.keeping import Keeping
from planning_health.maintenance.prediction import TARGET_SIZE_PROPERTY
from planning_health.reports.command_line import command
from planning_health.reports.model import APPLY, Action, Growth, Number, TableReport, Upkeep
from planning_health.wording import byte_size, counted, day, joined, parse_time, plain_number

SHORTEST: Final = 1.0
"""Days that must have passed since the repair before its growth is told."""

LAYOUT_PROPOSAL: Final = "advised_layout"
"""Id of the proposal that sets the advised target size of manifests, and whether commits merge them."""

_SECONDS: Final = 86_400
_LONGEST: Final = 3650
_UNNOTICED: Final = 0.005
"""The share of the gain that may be gone without anything being lost: sizes differ by bytes."""


@dataclass(frozen=True)
class Moment:
    """What a run measured of a table; values by the keys of the report's key numbers."""

    at: datetime
    values: dict[str, Number | None]


def upkeep(
    table: TableReport,
    repair: Action | None,
    moments: Sequence[Moment],
    settings_file: str | None = None,
    keeping: Callable[[], Keeping | None] = lambda: None,
) -> Upkeep | None:
    """The table's growth since its last repair.

    A value grows evenly: the line through its state after the repair that fits the measurements since best. Half of
    what the repair gained is lost where that line is halfway back; the value that is there first sets the cadence.

    Args:
        table: the table as it is now.
        repair: its newest repair that succeeded and was not undone.
        moments: earlier measurements of the table.
        settings_file: what commands name with ``--settings``.
        keeping: predicts what the next append makes of the table's layout; asked only where gains are being lost.

    Returns:
        ``None`` when there was no repair, or it is too young to tell.
    """
    begun, now = parse_time(repair.at if repair else None), parse_time(table.measured_at)
    if repair is None or begun is None or now is None or (now - begun) / timedelta(days=1) < SHORTEST:
        return None
    own = Moment(now, {number.key: number.value for number in table.numbers})
    since = [*(moment for moment in moments if begun < moment.at < now), own]
    grown = [
        growth
        for key, label, unit, before, after in _gains(repair)
        if (growth := _growth(key, label, unit, before, after, begun, since)) is not None
    ]
    if not grown:
        return None
    days = min((item.half_lost_days for item in grown if item.half_lost_days is not None), default=None)
    return Upkeep(
        repaired_at=repair.at,
        days=round((now - begun) / timedelta(days=1), 1),
        measurements=len(since),
        growth=grown,
        cadence_days=None if days is None else max(1, int(days)),
        text=_text(grown, begun, now, days),
        advice="" if days is None else advice(table, settings_file, keeping()),
    )


def advice(table: TableReport, settings_file: str | None, keeping: Keeping | None = None) -> str:
    """What makes a repair last: the properties by which commits merge manifests, with their predicted effect.

    Args:
        table: the table.
        settings_file: what commands name with ``--settings``.
        keeping: what the next append makes of the table's layout, where that was predicted.
    """
    begin = f"How commits merge manifests decides how long a repair lasts ({TARGET_SIZE_PROPERTY}, {MERGE_ENABLED})"
    advised = next((item for item in table.proposals if item.id == LAYOUT_PROPOSAL), None)
    if advised is not None:
        predicted = f", predicted: {advised.summary}" if advised.summary else ""
        return f"{begin}: the proposal “{advised.title}” sets what is advised{predicted}."
    if keeping is None:
        return f"{begin}: {command(['advise-layout', table.table], settings_file)} predicts the effect of each choice."
    return _kept(table.table, settings_file, keeping)


def _kept(table: str, settings_file: str | None, keeping: Keeping) -> str:
    if not keeping.merges:
        return (
            "The next append is predicted to merge none of today's manifests: what is lost comes from the manifests "
            "that appends add, and only another rewrite clusters those."
        )
    before, after = keeping.manifests
    merged = f"The next append is predicted to merge {counted(before, 'manifest')} into {after:,}"
    if not keeping.is_dearer:
        return f"{merged}, which costs planning nothing."
    now, then = keeping.read_bytes
    begin = (
        f"{merged}: planning a query then reads {byte_size(then)} of metadata instead of {byte_size(now)} on average."
    )
    if keeping.keeping_bytes is None:
        return (
            f"{begin} No size keeps them; with {MERGE_ENABLED} = false they are predicted to stay as they are, and "
            "each append adds a manifest."
        )
    words = ["maintain", table, "--no-rewrite", "--target-manifest-bytes", str(keeping.keeping_bytes)]
    return (
        f"{begin} {TARGET_SIZE_PROPERTY} = {keeping.keeping_bytes} instead of {keeping.target_bytes} is predicted to "
        f"leave them as they are ({command(words, settings_file, APPLY)}); so is {MERGE_ENABLED} = false, with which "
        "each append adds a manifest."
    )


def _gains(repair: Action) -> list[tuple[str, str, str, Number, Number]]:
    """What the repair made smaller: key number, label, unit, before, after."""
    rows = {row.key: row for row in repair.effect}
    overlaps = [row for key, row in rows.items() if key.startswith("overlap.") and row.before and row.after is not None]
    deepest = max(overlaps, key=lambda row: row.before or 0, default=None)
    found = (
        ("overlap_mean", "Manifests opened per value, mean", "manifests", deepest),
        ("metadata_bytes", "Metadata size", "bytes", rows.get("metadata_bytes")),
    )
    return [
        (key, label, unit, row.before, row.after)
        for key, label, unit, row in found
        if row is not None and row.before is not None and row.after is not None and row.after < row.before
    ]


def _growth(
    key: str, label: str, unit: str, before: Number, after: Number, begun: datetime, since: Sequence[Moment]
) -> Growth | None:
    points = [
        ((moment.at - begun).total_seconds() / _SECONDS, value - after)
        for moment in since
        if (value := moment.values.get(key)) is not None
    ]
    if not points:
        return None
    per_day = sum(days * grown for days, grown in points) / sum(days * days for days, _ in points)
    half = (before - after) / 2
    lost = points[-1][1] > _UNNOTICED * (before - after)
    return Growth(
        key=key,
        label=label,
        unit=unit,
        before=before,
        after=after,
        now=points[-1][1] + after,
        per_day=per_day,
        half_lost_days=half / per_day if lost and per_day > half / _LONGEST else None,
    )


def _text(grown: Sequence[Growth], begun: datetime, now: datetime, days: float | None) -> str:
    passed = counted(int((now - begun) / timedelta(days=1)), "day")
    if days is None:
        return f"Nothing of what the repair gained is lost after {passed}."
    told = [
        f"{item.label[0].lower()}{item.label[1:]} {_value(item.after, item.unit)} → {_value(item.now, item.unit)}"
        for item in grown
        if item.half_lost_days is not None
    ]
    lost = day((begun + timedelta(days=days)).isoformat())
    cadence = counted(max(1, int(days)), "day")
    advice = (
        f"At this pace half of what the repair gained is lost by {lost}: repair it every {cadence}."
        if begun + timedelta(days=days) > now
        else f"Half of what the repair gained was lost by {lost}, in {cadence}: change how commits merge manifests, or "
        "repair it that often."
    )
    return f"In {passed} since the repair: {joined(told)}. {advice}"


def _value(value: Number, unit: str) -> str:
    return byte_size(value) if unit == "bytes" else plain_number(round(value, 1))
