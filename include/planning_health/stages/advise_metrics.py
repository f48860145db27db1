"""Step: which column statistics a table should keep for the queries that were observed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

from planning_health.advice.metrics import MetricsAdvice, advise_metrics
from planning_health.advice.observed import Observation
from planning_health.envelope import Envelope
from planning_health.identifiers import TableName
from planning_health.maintenance.properties import plan_properties
from planning_health.metadata import PlanningMetadata
from planning_health.run_folder import RunFolder
from planning_health.settings import Query, SettingsDocument
from planning_health.stages.observed_workload import no_workload, recorded_observations, workload_json, workload_of
from planning_health.stages.queries import configured_queries
from planning_health.stages.table_stage import Outcome, run_table_stage

KIND: Final = "metrics_advice"


def advise_metrics_step(
    settings: SettingsDocument,
    run_folder: RunFolder,
    table: TableName,
    observed: Iterable[Observation] | None = None,
    *,
    budget: int = 0,
) -> Envelope:
    """Advises on one table's column statistics from the run's measurement; changes nothing.

    The result's data is that of :func:`metrics_document`.

    Args:
        settings: the settings; their queries are part of the workload.
        run_folder: the run whose measurement is used.
        table: the table.
        observed: what was observed beside the settings' queries; by default what the run's measurement found.
        budget: how many more files each observed query may read.
    """

    def work(metadata: PlanningMetadata) -> Outcome:
        seen = recorded_observations(run_folder) if observed is None else observed
        data = metrics_document(metadata, seen, configured_queries(settings, table), budget=budget)
        columns = data["columns"]
        return Outcome(
            headline={
                "columns": len(columns),
                "columns_kept": sum(column["mode"] != "none" for column in columns),
                "metadata_bytes_before": data["metadata_bytes_before"],
                "metadata_bytes_after": data["metadata_bytes_after"],
                "scans": data["workload"]["scans"],
            },
            data=data,
        )

    return run_table_stage(run_folder, table, KIND, work)


def metrics_document(
    metadata: PlanningMetadata, observed: Iterable[Observation], queries: Sequence[Query], *, budget: int = 0
) -> dict[str, Any]:
    """The advice as JSON: the workload, each column's mode and why, each query's files, and the commands.

    ``reason`` says why there is no advice, or nothing to change; else it is ``None``.
    """
    workload = workload_of(metadata, observed, queries)
    advice = advise_metrics(metadata, workload, budget=budget)
    document = {
        "budget": budget,
        "workload": workload_json(workload),
        "reason": no_workload(metadata, workload) if advice is None else None,
        **(advice or MetricsAdvice((), None, {}, (), 0, 0, ())).as_json(),
        "commands": [],
        "undo": [],
        "params": None,
    }
    request = advice.request if advice else None
    if request is not None:
        plan = plan_properties(metadata.info, request)
        name = metadata.info.name
        document |= {"commands": plan.commands(name), "undo": plan.undo(name), "params": request.model_dump()}
    elif advice is not None:
        document["reason"] = "the table's properties are as the workload needs them"
    return document
