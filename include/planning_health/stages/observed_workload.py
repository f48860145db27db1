"""What was observed of the tables' queries: the settings' queries, event logs and scan reports, as one workload.

Event logs are long: the measurement reads them once, and later steps of the run take what it found.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from typing import Any, Final

from pyiceberg.schema import Schema

from planning_health.advice.event_log import read_event_logs
from planning_health.advice.filter_sql import filter_sql
from planning_health.advice.observed import SETTINGS, Observation, ObservedWorkload, observe
from planning_health.advice.scan_reports import read_scan_reports
from planning_health.errors import InputError
from planning_health.metadata import PlanningMetadata
from planning_health.planning.predicates import parse_where
from planning_health.run_folder import RunFolder
from planning_health.settings import Query, SettingsDocument

logger = logging.getLogger(__name__)

OBSERVED: Final = "observed"
"""Kind of the run's result file with what the settings' event logs and scan reports tell."""

MOST_OBSERVED: Final = 20
"""Observed filters that maintenance predicts one by one; advice takes all of them."""


def record_observations(settings: SettingsDocument, run_folder: RunFolder) -> list[Observation]:
    """Reads the settings' event logs and scan reports, and keeps what they tell in the run folder.

    Logs that cannot be read leave the run with less to advise on; the result file has the reason.
    """
    if not (settings.workload.event_logs or settings.workload.scan_reports):
        return []
    try:
        found = _counted(observations(settings))
    except InputError as error:
        logger.warning("the observed workload is not known: %s", error)
        run_folder.write_result(OBSERVED, status="failed", reason=str(error))
        return []
    run_folder.write_result(
        OBSERVED, headline={"scans": sum(item.weight for item in found)}, data=[item.as_json() for item in found]
    )
    return found


def recorded_observations(run_folder: RunFolder) -> list[Observation]:
    """What :func:`record_observations` found in the run."""
    result = run_folder.read_result(OBSERVED)
    return [Observation.from_json(item) for item in result.data] if result is not None and result.status == "ok" else []


def _counted(found: Iterable[Observation]) -> list[Observation]:
    """Equal observations as one of their weight together."""
    counts = Counter[Observation]()
    for item in found:
        counts[replace(item, weight=1.0)] += item.weight  # type: ignore[assignment]
    return [replace(item, weight=float(weight)) for item, weight in counts.items()]


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


def known_queries(observed: ObservedWorkload, schema: Schema, configured: Sequence[Query]) -> list[Query]:
    """The configured queries, and the most frequent of a table's observed filters as queries.

    A filter that Spark SQL has no words for is left out.
    """
    queries = list(configured)
    for item in [item for item in observed.filters if SETTINGS not in item.sources][:MOST_OBSERVED]:
        with suppress(InputError):
            where = filter_sql(item.expression, schema)
            queries.append(
                Query(name=f"observed {len(queries) - len(configured) + 1}", where=where, weight=item.weight)
            )
    return queries


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
