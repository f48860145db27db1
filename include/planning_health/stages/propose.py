"""Step: what maintenance would do to a table, with the predicted effect. Changes nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from planning_health.advice.layout import advise_layout
from planning_health.advice.metrics import advise_metrics
from planning_health.advice.observed import ObservedWorkload
from planning_health.advice.proposals import layout_proposal, statistics_proposal
from planning_health.envelope import Envelope
from planning_health.errors import InputError
from planning_health.identifiers import TableName
from planning_health.maintenance.answers import HEAVY_STATISTICS, by_urgency
from planning_health.maintenance.properties import plan_properties
from planning_health.maintenance.proposals import (
    decide_specs,
    effect_of,
    headline_of,
    property_proposal,
    rewrite_proposal,
    trim_proposals,
)
from planning_health.maintenance.recommendations import recommendations
from planning_health.maintenance.request import MaintenanceRequest
from planning_health.maintenance.workload import Workload
from planning_health.metadata import PlanningMetadata
from planning_health.metadata.model import own_order
from planning_health.run_folder import RunFolder
from planning_health.settings import SettingsDocument
from planning_health.settings.thresholds import DEFAULTS
from planning_health.stages.observed_workload import known_queries, recorded_observations, workload_of
from planning_health.stages.queries import configured_queries
from planning_health.stages.table_stage import Outcome, run_table_stage

KIND = "proposal"
HEALTH = "health"
"""Kind of the diagnosis, whose findings ask for more than rewriting manifests."""

_STATISTICS: Final = "statistics_bytes_per_file"

MOSTLY_STATISTICS: Final = 0.5
"""From this share of its metadata on, a table's report says why metrics advice is not among its proposals."""

MOST_FILES_LAID_OUT: Final = 100_000
"""Larger tables get layout advice only from ``planning-health advise-layout``: it predicts many rewrites."""


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
    queries = configured_queries(settings, table)
    asked = request or MaintenanceRequest()

    def work(metadata: PlanningMetadata) -> Outcome:
        observed = workload_of(metadata, recorded_observations(run_folder), queries)
        workload = Workload.of(metadata, known_queries(observed, metadata.info.schema, queries))
        orders = _orders(metadata, findings) if request is None else {}
        proposals, reasons, effect = _requested(metadata, asked, workload, orders)
        if request is None and diagnosed and not any(item["answers"] for item in by_urgency(proposals, findings)):
            reasons = [f"no finding asks for it ({item['why']})" for item in proposals] + reasons
            proposals, effect = [], effect_of(metadata, metadata, workload)
        further = _advised(metadata, asked, findings, observed, workload) + recommendations(metadata, findings)
        return Outcome(
            headline={"proposals": len(proposals), "recommendations": len(further), **headline_of(effect)},
            data={
                "request": asked.model_dump(),
                "proposals": by_urgency([*proposals, *further], findings),
                "predicted": effect,
                "no_op_reason": None if proposals else "; ".join(reasons),
                "left_alone": reasons,
                "statistics_told": _statistics_told(metadata, health.data, observed)
                if request is None and health is not None and diagnosed
                else None,
            },
        )

    return run_table_stage(run_folder, table, KIND, work)


def _orders(metadata: PlanningMetadata, findings: Sequence[Mapping[str, Any]]) -> dict[int, list[tuple[str, ...]]]:
    """The fields that findings name, each first, by spec: what unasked proposals may sort by."""
    orders: dict[int, list[tuple[str, ...]]] = {}
    for finding in findings:
        spec_id, _, first = str(finding["scope_key"]).partition(".")
        spec = metadata.info.specs.get(int(spec_id)) if first and spec_id.isdecimal() else None
        names = [field.name for field in own_order(spec)] if spec else []
        if spec and first in names[1:]:
            orders.setdefault(spec.spec_id, []).append((first, *(name for name in names if name != first)))
    return {spec_id: list(dict.fromkeys(found)) for spec_id, found in orders.items()}


def _requested(
    metadata: PlanningMetadata,
    request: MaintenanceRequest,
    workload: Workload,
    orders: Mapping[int, Sequence[tuple[str, ...]]],
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
        for decision in decide_specs(metadata, request, workload, orders):
            if decision.worthwhile and decision.prediction is not None:
                earlier = [item["title"] for item in proposals if item["spec_id"] is not None]
                proposals.append(rewrite_proposal(request, decision, workload, earlier))
                state = decision.prediction.metadata
            else:
                reasons.append(decision.reason)
    return proposals, reasons, effect_of(metadata, state, workload)


def _advised(
    metadata: PlanningMetadata,
    asked: MaintenanceRequest,
    findings: Sequence[Mapping[str, Any]],
    observed: ObservedWorkload,
    workload: Workload,
) -> list[dict[str, Any]]:
    """What the observed queries advise where the request leaves it open.

    Metrics modes for a table whose statistics are heavy, and another layout for one that it makes notably quicker to
    plan.
    """
    advised: list[dict[str, Any] | None] = []
    if _are_heavy(findings):
        advised += _statistics(metadata, asked, observed, workload)
    laid_out = asked.target_manifest_bytes is not None or asked.sort_by or asked.spec_id is not None
    if not laid_out and len(metadata.data_files) <= MOST_FILES_LAID_OUT:
        layout = advise_layout(metadata, observed.filters)
        if layout is not None:
            advised.append(layout_proposal(metadata, layout, workload))
    return [proposal for proposal in advised if proposal is not None]


def _are_heavy(findings: Sequence[Mapping[str, Any]]) -> bool:
    """Whether a finding says that statistics are heavy."""
    return any(str(item["id"]).startswith(HEAVY_STATISTICS) for item in findings)


def _statistics_told(metadata: PlanningMetadata, health: Mapping[str, Any], observed: ObservedWorkload) -> str | None:
    """Why metrics modes are not proposed for a table whose metadata is mostly statistics; ``None`` for any other."""
    signals = {item["signal"]: item for item in health.get("signals") or () if item["scope"] == "table"}
    bytes_per_file = signals.get(_STATISTICS, {}).get("value")
    share = signals.get("statistics_share", {}).get("value")
    if (
        _are_heavy(health["findings"])
        or not observed.filters
        or bytes_per_file is None
        or (share or 0) < MOSTLY_STATISTICS
    ):
        return None
    return (
        f"Metrics advice is not proposed: statistics are {share:.0%} of the uncompressed metadata, but with "
        f"{bytes_per_file:,.0f} bytes a file below what is a finding ({_STATISTICS}, by default from "
        f"{DEFAULTS[_STATISTICS].warning:,.0f}). planning-health advise-metrics {metadata.info.name} tells what the "
        "queries need of them"
    )


def _statistics(
    metadata: PlanningMetadata, asked: MaintenanceRequest, observed: ObservedWorkload, workload: Workload
) -> list[dict[str, Any] | None]:
    """The advised modes with a trim to them; where nothing is advised, a trim to the modes set or asked for."""
    try:
        advice = None if asked.sets_properties else advise_metrics(metadata, observed)
        advised = statistics_proposal(metadata, advice, workload) if advice else None
        return [advised] if advised or asked.trims else [*trim_proposals(metadata, asked, workload)]
    except InputError:  # the table's own properties are in disorder: nothing can be set unasked
        return []
