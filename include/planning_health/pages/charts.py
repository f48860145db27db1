"""A number over time: as a sparkline beside a table's name, and as a chart with its axis on the table's page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from planning_health.pages.store import Moment
from planning_health.reports.model import Action, Comparison, Number
from planning_health.wording import clock, day, parse_time, quantity

OVERLAP: Final = "overlap_mean"
METADATA: Final = "metadata_bytes"
CHARTS: Final = (
    (OVERLAP, "Overlap depth", "manifests"),
    (METADATA, "Metadata size", "bytes"),
    ("manifests", "Manifests", "manifests"),
    ("deleted_ratio", "Highest deleted ratio", "ratio"),
    ("data_files", "Data files", "count"),
    ("delete_files", "Delete files", "count"),
)
"""The numbers that are drawn over time, with their unit."""

MAX_POINTS: Final = 80
_WIDTH: Final = 100.0
_HEIGHT: Final = 20.0


@dataclass(frozen=True)
class Sample:
    """A number at one moment; ``None`` was not measured."""

    at: datetime
    value: Number | None


@dataclass(frozen=True)
class Mark:
    """A repair on the time axis; ``x`` runs from 0 to 1."""

    x: float
    label: str


@dataclass(frozen=True)
class Point:
    """A measured value in a chart; ``x`` and ``y`` run from 0 to 1, ``y`` upwards."""

    x: float
    y: float
    label: str


@dataclass(frozen=True)
class Chart:
    """A number over time.

    Attributes:
        path: the line in a box of 1000 × 100, with gaps where nothing was measured.
        summary: the chart in a sentence, for those who do not see it.
    """

    key: str
    title: str
    path: str
    points: Sequence[Point]
    marks: Sequence[Mark]
    highest: str
    first: str
    last: str
    summary: str


def samples(moments: Sequence[Moment], actions: Sequence[Action], key: str) -> list[Sample]:
    """A table's number as each run measured it, and right after each repair; at most ``MAX_POINTS``, the newest."""
    found = [Sample(moment.at, moment.point.values.get(key)) for moment in moments]
    found += [
        Sample(at, value)
        for action in actions
        if action.succeeded and (at := parse_time(action.at)) and (value := _after(action.effect, key)) is not None
    ]
    return sorted(found, key=lambda sample: sample.at)[-MAX_POINTS:]


def _after(effect: Sequence[Comparison], key: str) -> Number | None:
    if key == OVERLAP:
        depths = [row.after for row in effect if row.key.startswith("overlap.") and row.after is not None]
        return max(depths, default=None)
    return next((row.after for row in effect if row.key == key), None)


def sparkline(series: Sequence[Sample]) -> str:
    """The path of a sparkline in a box of 100 × 20 whose foot is zero; empty before the second measurement."""
    measured = sum(sample.value is not None for sample in series)
    return _path(series, _WIDTH, _HEIGHT) if measured > 1 else ""


def spark_text(series: Sequence[Sample], unit: str) -> str:
    """A sparkline in words: ``from 40 to 4 manifests since 30 Nov 2025``."""
    known = [sample for sample in series if sample.value is not None]
    if not known:
        return "not measured"
    first, last = known[0], known[-1]
    if len(known) == 1:
        return f"{quantity(last.value, unit)}, measured once"
    return f"from {quantity(first.value, unit)} to {quantity(last.value, unit)} since {day(first.at.isoformat())}"


def charts(moments: Sequence[Moment], actions: Sequence[Action]) -> list[Chart]:
    """The charts of one table; a number that was measured fewer than twice, or was always zero, has none."""
    drawn = [(name, samples(moments, actions, name[0])) for name in CHARTS]
    return [
        _chart(key, title, unit, series, actions)
        for (key, title, unit), series in drawn
        if sum(sample.value is not None for sample in series) > 1 and any(sample.value for sample in series)
    ]


def _chart(key: str, title: str, unit: str, series: Sequence[Sample], actions: Sequence[Action]) -> Chart:
    first, last = series[0].at, series[-1].at
    written = clock if first.date() == last.date() else day
    highest = _highest(series)
    points = [
        Point(
            _x(sample, series),
            sample.value / highest,
            f"{written(sample.at.isoformat())}: {quantity(sample.value, unit)}",
        )
        for sample in series
        if sample.value is not None
    ]
    marks = [
        Mark(_x(Sample(at, None), series), f"{action.title}, {written(action.at)}")
        for action in actions
        if action.succeeded and (at := parse_time(action.at)) and first <= at <= last
    ]
    return Chart(
        key=key,
        title=title,
        path=_path(series, 1000, 100),
        points=points,
        marks=marks,
        highest=quantity(highest, unit),
        first=written(first.isoformat()),
        last=written(last.isoformat()),
        summary=f"{title}: {spark_text(series, unit)}; highest {quantity(highest, unit)}",
    )


def table_of(moments: Sequence[Moment]) -> Iterator[tuple[Moment, Mapping[str, str]]]:
    """The numbers behind the charts, the newest first."""
    for moment in reversed(moments):
        yield moment, {key: quantity(moment.point.values.get(key), unit) for key, _, unit in CHARTS}


def _highest(series: Sequence[Sample]) -> Number:
    return max((sample.value for sample in series if sample.value is not None), default=0) or 1


def _x(sample: Sample, series: Sequence[Sample]) -> float:
    span = (series[-1].at - series[0].at).total_seconds()
    return round((sample.at - series[0].at).total_seconds() / span, 4) if span else 1.0


def _path(series: Sequence[Sample], width: float, height: float) -> str:
    """Straight lines between measurements; a gap where a run could not measure; a lone one is a short dash."""
    highest = _highest(series)
    parts: list[str] = []
    previous: tuple[float, float] | None = None
    for sample in series:
        if sample.value is None:
            previous = None
            continue
        x, y = round(_x(sample, series) * width, 1), round(height - sample.value / highest * height, 1)
        parts.append(f"M{x:g} {y:g}h.1" if previous is None else f"L{x:g} {y:g}")
        previous = x, y
    return "".join(parts)
