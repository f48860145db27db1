"""What was observed of the tables' queries: the settings' queries, event logs and scan reports, as one workload."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

from planning_health.advice.event_log import read_event_logs
from planning_health.advice.observed import SETTINGS, Observation, ObservedWorkload, observe
from planning_health.advice.scan_reports import read_scan_reports
from planning_health.errors import InputError
from planning_health.metadata import PlanningMetadata
from planning_health.planning.predicates import parse_where
from planning_health.settings import Query, SettingsDocument


def observations(
    settings: SettingsDocument, event_logs: Sequence[str] = (), scan_reports: Sequence[str] = ()
) -> list[Observation]:
    """What the settings' and further event logs and scan reports tell of all tables.

    Raises:
        InputError: a path that cannot be read.
    """
    workload = settings.workload
    return [
        *read_event_logs([*workload.event_logs, *event_logs]),
        *read_scan_reports([*workload.scan_reports, *scan_reports]),
    ]


def workload_of(
    metadata: PlanningMetadata, observed: Iterable[Observation], queries: Sequence[Query]
) -> ObservedWorkload:
    """The workload of a measured table: what was observed, and the configured queries."""
    info = metadata.info
    now = datetime.fromisoformat(info.measured_at)
    return observe(info.name, info.schema, [*_configured(metadata, queries, now), *observed])


def _configured(metadata: PlanningMetadata, queries: Sequence[Query], now: datetime) -> Iterable[Observation]:
    table = metadata.info.name.dotted
    for query in queries:
        try:
            filter_ = parse_where(query.where, metadata.info.schema, now=now).expression
        except InputError:
            yield Observation(SETTINGS, table, query.weight, query.name, unread=f"filter {query.where}")
        else:
            yield Observation(SETTINGS, table, query.weight, query.name, filter=filter_)


def no_workload(metadata: PlanningMetadata, workload: ObservedWorkload) -> str:
    """Why a table without a workload gets no advice."""
    if metadata.info.snapshot_id is None:
        return "the table is empty"
    others = sorted(workload.other_tables)
    elsewhere = f"; the sources are about {', '.join(others[:5])}" if others else ""
    return (
        "no query of the table is known, so nobody can tell which columns are filtered by: give the table queries in "
        f"the settings, event logs or scan reports{elsewhere}"
    )


def workload_json(workload: ObservedWorkload) -> dict[str, Any]:
    """What was observed, as a result file holds it."""
    return {
        "scans": sum(item.weight for item in workload.filters),
        "filters": len(workload.filters),
        "hidden": dict(workload.hidden),
        "bounds_of": dict(workload.bounds_of),
        "counts_of": dict(workload.counts_of),
        "row_level": dict(workload.row_level),
        "unread": dict(workload.unread),
        "other_tables": dict(workload.other_tables),
    }
