"""Step: what maintenance would do to a table, with the predicted effect. Changes nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from planning_health.envelope import Envelope
from planning_health.errors import InputError
from planning_health.identifiers import TableName
from planning_health.maintenance.answers import by_urgency
from planning_health.maintenance.properties import plan_properties
from planning_health.maintenance.proposals import (
    decide_specs,
    effect_of,
    headline_of,
    property_proposal,
    rewrite_proposal,
    statistics_request,
)
from planning_health.maintenance.recommendations import recommendations
from planning_health.maintenance.request import MaintenanceRequest
from planning_health.maintenance.workload import Workload
from planning_health.metadata import PlanningMetadata
from planning_health.run_folder import RunFolder
from planning_health.settings import SettingsDocument
from planning_health.stages.table_stage import Outcome, run_table_stage

KIND = "proposal"
HEALTH = "health"
"""Kind of the diagnosis, whose findings ask for more than rewriting manifests."""


def propose(
    settings: SettingsDocument, run_folder: RunFolder, table: TableName, request: MaintenanceRequest | None = None
) -> Envelope:
    """Proposes the requested actions from the run's measurement, and what its diagnosis recommends beside them.

    A request that does not fit the table (an unknown column, mode, spec or sort field) gives status ``failed`` with
    every fault named. Without a request nobody has asked: a rewrite is then proposed only when it answers a finding.
    """
    health = run_folder.read_result(HEALTH, table)
    diagnosed = health is not None and health.status == "ok"
    findings = health.data["findings"] if health is not None and diagnosed else []
    rule = settings.rule_for(table)
    asked = request or MaintenanceRequest()

    def work(metadata: PlanningMetadata) -> Outcome:
        workload = Workload.of(metadata, rule.queries if rule else [])
        proposals, reasons, effect = _requested(metadata, asked, workload)
        if request is None and diagnosed and not any(item["answers"] for item in by_urgency(proposals, findings)):
            reasons = [f"no finding asks for it ({item['why']})" for item in proposals] + reasons
            proposals, effect = [], effect_of(metadata, metadata, workload)
        further = [] if asked.sets_properties else _statistics(metadata, findings, workload)
        further += recommendations(metadata, findings)
        return Outcome(
            headline={"proposals": len(proposals), "recommendations": len(further), **headline_of(effect)},
            data={
                "request": asked.model_dump(),
                "proposals": by_urgency([*proposals, *further], findings),
                "predicted": effect,
                "no_op_reason": None if proposals else "; ".join(reasons),
                "left_alone": reasons,
            },
        )

    return run_table_stage(run_folder, table, KIND, work)


def _requested(
    metadata: PlanningMetadata, request: MaintenanceRequest, workload: Workload
) -> tuple[list[dict[str, Any]], list[str], dict[str, Any]]:
    """The proposals, why other things are left alone, and the effect of all proposals together."""
    proposals, reasons, state = [], [], metadata
    if request.sets_properties:
        plan = plan_properties(metadata.info, request)
        if plan.changes:
            proposals.append(property_proposal(metadata, request, plan, workload))
        else:
            reasons.append("the properties have these values already")
    if request.rewrites_manifests or request.trims:
        if metadata.info.snapshot_id is None:
            reasons.append("the table is empty")
        for decision in decide_specs(metadata, request, workload):
            if decision.worthwhile and decision.prediction is not None:
                earlier = [item["title"] for item in proposals if item["spec_id"] is not None]
                proposals.append(rewrite_proposal(request, decision, workload, earlier))
                state = decision.prediction.metadata
            else:
                reasons.append(decision.reason)
    return proposals, reasons, effect_of(metadata, state, workload)


def _statistics(
    metadata: PlanningMetadata, findings: Sequence[Mapping[str, Any]], workload: Workload
) -> list[dict[str, Any]]:
    """Metrics properties for a table whose statistics are heavy, when its queries are known."""
    if not any(str(finding["id"]).startswith("heavy_statistics") for finding in findings):
        return []
    request = statistics_request(metadata, workload)
    if request is None:
        return []
    try:
        plan = plan_properties(metadata.info, request)
    except InputError:  # the table's own properties are in disorder: nothing can be set unasked
        return []
    return [property_proposal(metadata, request, plan, workload)] if plan.changes else []
