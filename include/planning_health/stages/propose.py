"""Step: what maintenance would do to a table, with the predicted effect. Changes nothing."""

from __future__ import annotations

from planning_health.envelope import Envelope
from planning_health.identifiers import TableName
from planning_health.maintenance.properties import plan_properties
from planning_health.maintenance.proposals import (
    decide_specs,
    effect_of,
    headline_of,
    property_proposal,
    rewrite_proposal,
)
from planning_health.maintenance.request import MaintenanceRequest
from planning_health.metadata import PlanningMetadata
from planning_health.run_folder import RunFolder
from planning_health.settings import SettingsDocument
from planning_health.stages.table_stage import Outcome, run_table_stage

KIND = "proposal"


def propose(
    settings: SettingsDocument, run_folder: RunFolder, table: TableName, request: MaintenanceRequest
) -> Envelope:
    """Proposes the requested actions from the run's measurement of the table.

    A request that does not fit the table (an unknown column, mode, spec or sort field) gives status ``failed`` with
    every fault named.
    """
    return run_table_stage(run_folder, table, KIND, lambda metadata: _outcome(metadata, request))


def _outcome(metadata: PlanningMetadata, request: MaintenanceRequest) -> Outcome:
    proposals = []
    reasons = []
    if request.sets_properties:
        plan = plan_properties(metadata.info, request)
        if plan.changes:
            proposals.append(property_proposal(metadata, request, plan))
        else:
            reasons.append("the properties have these values already")
    state = metadata
    if request.rewrites_manifests:
        for decision in decide_specs(metadata, request):
            if decision.worthwhile and decision.prediction is not None:
                proposals.append(rewrite_proposal(request, decision))
                state = decision.prediction.metadata
            else:
                reasons.append(decision.reason)
        if metadata.info.snapshot_id is None:
            reasons.append("the table is empty")
    effect = effect_of(metadata, state)
    return Outcome(
        headline={"proposals": len(proposals), **headline_of(effect)},
        data={
            "request": request.model_dump(),
            "proposals": proposals,
            "predicted": effect,
            "no_op_reason": None if proposals else "; ".join(reasons),
            "left_alone": reasons,
        },
    )
