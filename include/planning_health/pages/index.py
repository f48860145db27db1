"""The list of tables: filtered, sorted and cut into pages on the server, so that it works without script."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from planning_health.pages.charts import METADATA, OVERLAP, samples, spark_text, sparkline
from planning_health.pages.store import Moment, Trends
from planning_health.reports.model import STATE_ORDER, Action, Number
from planning_health.wording import visible

PAGE_SIZE: Final = 100
STATES: Final = ("critical", "failed", "warning", "not_measured", "ok")


@dataclass(frozen=True)
class Query:
    """What a person asked for; anything unknown stands for the default."""

    q: str = ""
    state: str = ""
    sort: str = ""
    page: int = 1


@dataclass(frozen=True)
class Spark:
    """A sparkline: its path, and what it says."""

    path: str
    text: str


@dataclass(frozen=True)
class Row:
    """A table in the list."""

    name: str
    shown: str
    newest: Moment
    repaired_at: str | None
    overlap: Spark
    metadata: Spark


@dataclass(frozen=True)
class Index:
    """The page of the list that was asked for."""

    query: Query
    rows: Sequence[Row]
    found: int
    total: int
    pages: int
    counts: dict[str, int]


def _urgency(item: tuple[str, Moment]) -> tuple[int, float, str]:
    name, moment = item
    return STATE_ORDER[moment.point.state], -(moment.point.values.get(OVERLAP) or 0), name


def _largest(key: str) -> Callable[[tuple[str, Moment]], tuple[Number, str]]:
    return lambda item: (-(item[1].point.values.get(key) or -1), item[0])


SORTS: Final[dict[str, tuple[str, Callable[[tuple[str, Moment]], Any]]]] = {
    "urgency": ("Most urgent first", _urgency),
    "name": ("Name", lambda item: item[0]),
    "overlap": ("Deepest overlap first", _largest(OVERLAP)),
    "metadata": ("Largest metadata first", _largest(METADATA)),
    "manifests": ("Most manifests first", _largest("manifests")),
    "measured": ("Measured longest ago first", lambda item: (item[1].at, item[0])),
}


def index(trends: Trends, query: Query) -> Index:
    """The tables that match, the wanted page of them with sparklines."""
    newest = {name: moments[-1] for name, moments in trends.tables.items()}
    counts = {state: sum(moment.point.state == state for moment in newest.values()) for state in STATES}
    wanted = query.q.strip().casefold()
    found = [
        (name, moment)
        for name, moment in newest.items()
        if wanted in name.casefold() and query.state in ("", moment.point.state)
    ]
    found.sort(key=SORTS.get(query.sort, SORTS["urgency"])[1])
    pages = max(1, -(-len(found) // PAGE_SIZE))
    page = min(max(query.page, 1), pages)
    shown = found[(page - 1) * PAGE_SIZE : page * PAGE_SIZE]
    return Index(
        query=Query(query.q.strip(), query.state if query.state in STATES else "", query.sort, page),
        rows=[_row(name, moment, trends) for name, moment in shown],
        found=len(found),
        total=len(newest),
        pages=pages,
        counts=counts,
    )


def _row(name: str, newest: Moment, trends: Trends) -> Row:
    moments, actions = trends.tables[name], trends.actions.get(visible(name), ())
    return Row(
        name=name,
        shown=visible(name),
        newest=newest,
        repaired_at=repaired_since(newest, actions),
        overlap=_spark(moments, actions, OVERLAP, "manifests"),
        metadata=_spark(moments, actions, METADATA, "bytes"),
    )


def repaired_since(newest: Moment, actions: Sequence[Action]) -> str | None:
    """When the table was repaired after it had been measured; ``None`` when the measurement is newer."""
    measured = newest.at.isoformat()
    return next((action.at for action in actions if action.succeeded and action.started_at > measured), None)


def _spark(moments: Sequence[Moment], actions: Sequence[Action], key: str, unit: str) -> Spark:
    series = samples(moments, actions, key)
    return Spark(sparkline(series), spark_text(series, unit))
