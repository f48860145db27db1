"""Step: which manifest size and sort order plan a table's observed queries fastest."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

from planning_health.advice.layout import PlanningPrice, advise_layout
from planning_health.advice.observed import Observation
from planning_health.envelope import Envelope
from planning_health.identifiers import TableName
from planning_health.metadata import PlanningMetadata
from planning_health.run_folder import RunFolder
from planning_health.settings import Query, SettingsDocument
from planning_health.stages.observed_workload import no_workload, recorded_observations, workload_json, workload_of
from planning_health.stages.queries import configured_queries
from planning_health.stages.table_stage import Outcome, run_table_stage

KIND: Final = "layout_advice"


def advise_layout_step(
    settings: SettingsDocument,
    run_folder: RunFolder,
    table: TableName,
    observed: Iterable[Observation] | None = None,
    *,
    threads: int | None = None,
) -> Envelope:
    """Advises on one table's manifest layout from the run's measurement; changes nothing.

    The result's data is that of :func:`layout_document`; its arguments are those of ``advise_metrics_step``, and the
    threads of Iceberg's worker pool where queries are planned.
    """

    def work(metadata: PlanningMetadata) -> Outcome:
        seen = recorded_observations(run_folder) if observed is None else observed
        data = layout_document(metadata, seen, configured_queries(settings, table), threads=threads)
        now, advised = data["now"], data["advised"]
        return Outcome(
            headline={
                "candidates": len(data["candidates"]),
                "planning_ms_now": now["planning_ms"] if now else None,
                "planning_ms_advised": advised["planning_ms"] if advised else None,
                "target_manifest_bytes": advised["target_bytes"] if advised else None,
            },
            data=data,
        )

    return run_table_stage(run_folder, table, KIND, work)


def layout_document(
    metadata: PlanningMetadata,
    observed: Iterable[Observation],
    queries: Sequence[Query],
    *,
    threads: int | None = None,
) -> dict[str, Any]:
    """The advice as JSON: today's layout, each candidate, the advised one, why, and the commands that make it."""
    workload = workload_of(metadata, observed, queries)
    document: dict[str, Any] = {"workload": workload_json(workload), "commands": []}
    nothing = document | {"now": None, "candidates": [], "advised": None, "properties": {}}
    if metadata.info.snapshot_id is None or not workload.filters:
        return nothing | {"why": no_workload(metadata, workload)}
    price = PlanningPrice.of(metadata, threads)
    advice = advise_layout(metadata, workload.filters, price=price)
    if advice is None:
        return nothing | {"why": "the table has no manifests that could be rewritten"}
    return document | advice.as_json() | {"commands": advice.commands(metadata)}
