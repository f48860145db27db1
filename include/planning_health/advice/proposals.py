"""Advice in the shape of proposals, whose ``params`` fill the maintenance form."""

from __future__ import annotations

from typing import Any, Final

from planning_health.advice.layout import LayoutAdvice, rewritten
from planning_health.advice.metrics import NO_STATISTICS, MetricsAdvice
from planning_health.maintenance import commands
from planning_health.maintenance.properties import plan_properties
from planning_health.maintenance.proposals import decide_specs, effect_of, property_proposal, rollback_commands
from planning_health.maintenance.request import MaintenanceRequest
from planning_health.maintenance.workload import Workload
from planning_health.metadata import PlanningMetadata

_LISTED: Final = 6


def statistics_proposal(metadata: PlanningMetadata, advice: MetricsAdvice, workload: Workload) -> dict[str, Any] | None:
    """Sets the advised metrics modes and trims existing entries to them; ``None`` where nothing would change.

    Raises:
        InputError: the table's own properties are in disorder.
    """
    if advice.request is None:
        return None
    request = advice.request.model_copy(update={"actions": ["set_properties", "trim_statistics"]})
    plan = plan_properties(metadata.info, request)
    decisions = [item for item in decide_specs(metadata, request, workload) if item.prediction and item.worthwhile]
    state = decisions[-1].prediction.metadata if decisions and decisions[-1].prediction else metadata
    name = metadata.info.name
    return property_proposal(metadata, request, plan, workload) | {
        "id": "advised_statistics",
        "title": "Keep the column statistics that the queries use, and trim the others",
        "why": _statistics_why(advice),
        "commands": [*plan.commands(name), *(commands.trim(name, item.spec_id) for item in decisions)],
        "undo": [*plan.undo(name), *(rollback_commands(metadata.info) if decisions else ())],
        "predicted": effect_of(metadata, state, workload),
        "risk": "Queries that were not observed may read more files: statistics that are gone prune nothing, and come "
        "back only by a rollback, or when data files are rewritten. " + " ".join(plan.notes),
        "params": request.model_dump(include={"actions", "metrics_default", "metrics_columns"}),
    }


def _statistics_why(advice: MetricsAdvice) -> str:
    kept = [column for column in advice.columns if column.mode != NO_STATISTICS]
    named = ", ".join(f"{column.column} {column.mode}" for column in kept[:_LISTED])
    more = f" and {len(kept) - _LISTED} more" if len(kept) > _LISTED else ""
    scans = sum(item.weight for item in advice.queries)
    return (
        f"the queries need statistics of {len(kept)} of {len(advice.columns)} columns ({named}{more}): with those "
        f"alone, {scans:,.0f} observed scans read the same files as now"
    )


def layout_proposal(metadata: PlanningMetadata, advice: LayoutAdvice, workload: Workload) -> dict[str, Any] | None:
    """Sets the advised target size and rewrites the manifests in the advised order; ``None`` where today's is good."""
    if advice.advised is None:
        return None
    target, order = advice.advised.target_bytes, list(advice.advised.sort_by)
    request = MaintenanceRequest(
        actions=["set_properties", "rewrite_manifests"], target_manifest_bytes=target, sort_by=order
    )
    before = {key: metadata.info.properties.get(key) for key in advice.properties}
    return {
        "id": "advised_layout",
        "action": "rewrite_manifests",
        "title": "Lay the manifests out for the queries",
        "why": advice.why,
        "spec_id": None,
        "sort_by": order,
        "commands": advice.commands(metadata),
        "undo": [*commands.property_changes(metadata.info.name, before), *rollback_commands(metadata.info)],
        "predicted": effect_of(metadata, rewritten(metadata, target, advice.advised.sort_by), workload),
        "risk": "Instead of other rewrites of these manifests, not on top of them. Metadata only: no data file is "
        "touched. Undo it only while no other commit has followed: a rollback would lose that commit.",
        "params": request.model_dump(include={"actions", "target_manifest_bytes", "sort_by"}),
    }
