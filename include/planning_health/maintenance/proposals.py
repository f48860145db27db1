"""What maintenance proposes for a table: the exact commands, how to undo them, and the predicted effect.

Pure: everything comes from the recorded planning metadata, so the same measurement gives the same proposals.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import pyarrow.compute as pc

from planning_health.errors import InputError
from planning_health.health.properties import MERGE_ENABLED
from planning_health.identifiers import TableName
from planning_health.maintenance import commands
from planning_health.maintenance.guards import spec_refusal
from planning_health.maintenance.layout import Layout, layout_of
from planning_health.maintenance.next_append import predict_next_append
from planning_health.maintenance.prediction import RewritePrediction, predict_rewrite_manifests, target_size
from planning_health.maintenance.properties import (
    PropertyPlan,
    properties_after,
)
from planning_health.maintenance.request import MaintenanceRequest
from planning_health.maintenance.trim.metrics_config import trim_rule
from planning_health.maintenance.trim.prediction import TrimPrediction, predict_trim, unreadable_partition
from planning_health.maintenance.trim.rule import TrimRule
from planning_health.maintenance.workload import Opened, Workload
from planning_health.metadata import PlanningMetadata, TableInfo

_EFFECTS: Final = ("manifests", "delete_manifests", "metadata_bytes", "statistics_bytes", "deleted_entries")

WORTHWHILE: Final = 0.05
"""The share of the planning cost that a rewrite must save; less is noise, and the next commit undoes it."""


_TITLES: Final = {
    "rewrite_manifests": "Rewrite the manifests",
    "trim_statistics": "Trim the column statistics, and cluster the manifests,",
}
_TRIM_RISK: Final = (
    "Removed statistics come back only by a rollback, or with new data files: predicates on these columns skip no "
    "files any more. Delete manifests stay as they are."
)

_MODES_RISK: Final = "Metrics modes change new files only: existing manifest entries keep their statistics"
_NOT_TRIMMED: Final = f"{_MODES_RISK}, and rewrite_manifests copies them as they are; a trim removes them."
_TRIMMED_LATER: Final = f"{_MODES_RISK} until they are trimmed, as proposed beside this where a trim removes any."


@dataclass(frozen=True)
class SpecDecision:
    """What is to be done about one spec's manifests.

    Attributes:
        base: the planning metadata that the decision is about.
        prediction: the rewrite's effect; ``None`` where it is refused or would do nothing.
        worthwhile: whether it is to be run.
        reason: why, or why not.
        refused: the spec cannot be rewritten at all.
        sort_by: the partition fields to cluster by, none for the spec's own order.
        cost: what planning costs afterwards, where it is predicted.
    """

    spec_id: int
    base: PlanningMetadata
    prediction: RewritePrediction | None
    worthwhile: bool
    reason: str
    refused: bool = False
    sort_by: tuple[str, ...] = ()
    cost: float = math.inf

    @property
    def trims(self) -> bool:
        """Whether statistics are removed: by our own rewrite, since Iceberg's copies them."""
        return isinstance(self.prediction, TrimPrediction)

    @property
    def action(self) -> str:
        """The action's name."""
        return "trim_statistics" if self.trims else "rewrite_manifests"

    def command(self, table: TableName, sort_by: Sequence[str]) -> str:
        """The statement or command that does it by hand."""
        made = commands.trim if self.trims else commands.rewrite_manifests
        return made(table, self.spec_id, sort_by)


def decide_spec(
    metadata: PlanningMetadata, spec_id: int, target: int, sort_by: Sequence[str], workload: Workload
) -> SpecDecision:
    """Whether a rewrite of one spec pays for the workload, by its prediction."""
    refusal = spec_refusal(metadata, spec_id) or _sort_refusal(metadata, spec_id, sort_by)
    if refusal:
        return SpecDecision(spec_id, metadata, None, False, refusal, refused=True)
    prediction = predict_rewrite_manifests(metadata, spec_id, target, sort_by)
    if not prediction.rewrites:
        count = _manifests_of(metadata, spec_id)
        return SpecDecision(
            spec_id, metadata, None, False, f"spec {spec_id} has {count} manifest(s): nothing to merge or split"
        )
    effect = _Effect.of(metadata, prediction.metadata, spec_id, workload)
    cheaper = effect.cost_after <= effect.cost_before * (1 - WORTHWHILE)
    smaller = effect.after.metadata_bytes <= effect.before.metadata_bytes * (1 - WORTHWHILE)
    no_dearer = effect.cost_after <= effect.cost_before
    # entries of removed files weigh on every reader
    worthwhile = cheaper or (smaller and no_dearer and bool(effect.before.deleted_entries))
    reason = str(effect) if worthwhile else f"nothing would improve ({effect})"
    return SpecDecision(
        spec_id, metadata, prediction, worthwhile, reason, sort_by=tuple(sort_by), cost=effect.cost_after
    )


def decide_trim(
    metadata: PlanningMetadata, spec_id: int, request: MaintenanceRequest, workload: Workload
) -> SpecDecision:
    """Whether entries of one spec carry more statistics than the table's metrics properties say, or will say."""
    refusal = spec_refusal(metadata, spec_id) or _sort_refusal(metadata, spec_id, request.sort_by)
    if not refusal and (field := unreadable_partition(metadata, spec_id)) is not None:
        refusal = f"cannot trim spec {spec_id}: a value of partition field {field!r} cannot be read"
    if refusal:
        return SpecDecision(spec_id, metadata, None, False, refusal, refused=True)
    prediction = predict_trim(
        metadata, spec_id, target_of(metadata, request), request.sort_by, requested_rule(metadata, request)
    )
    if not prediction.removed_bytes:
        reason = f"spec {spec_id}: no entry carries more statistics than the metrics properties say"
        return SpecDecision(spec_id, metadata, None, False, reason)
    effect = _Effect.of(metadata, prediction.metadata, spec_id, workload)
    share = prediction.removed_bytes / max(1, effect.before.statistics_bytes)
    reason = f"{share:.0%} of all statistics are more than the metrics properties say ({effect})"
    return SpecDecision(spec_id, metadata, prediction, True, reason, sort_by=tuple(request.sort_by))


def requested_rule(metadata: PlanningMetadata, request: MaintenanceRequest) -> TrimRule:
    """What a trim leaves of each column's statistics, once the request's properties are set.

    Raises:
        InputError: when these properties do not fit the table.
    """
    return trim_rule(metadata, properties_after(metadata.info, request))


def target_of(metadata: PlanningMetadata, request: MaintenanceRequest) -> int:
    """The size that new manifests aim at."""
    return request.target_manifest_bytes or target_size(metadata.info.properties)


@dataclass(frozen=True)
class _Effect:
    """A table before and after the rewrite of one spec, and what planning costs in that spec's manifests."""

    spec_id: int
    before: Layout
    after: Layout
    cost_before: float
    cost_after: float
    cost_of: str

    @classmethod
    def of(cls, before: PlanningMetadata, after: PlanningMetadata, spec_id: int, workload: Workload) -> _Effect:
        return cls(
            spec_id,
            layout_of(before),
            layout_of(after),
            workload.cost(before, spec_id),
            workload.cost(after, spec_id),
            "the queries" if workload.configured else "a lookup",
        )

    def __str__(self) -> str:
        counts = [layout.manifests_by_spec.get(self.spec_id, 0) for layout in (self.before, self.after)]
        return (
            f"spec {self.spec_id}: {counts[0]} → {counts[1]} manifests, "
            f"{self.before.metadata_bytes:,} → {self.after.metadata_bytes:,} bytes of manifests, "
            f"planning cost of {self.cost_of} × {self.cost_after / self.cost_before if self.cost_before else 1:.2f}"
        )


def _manifests_of(metadata: PlanningMetadata, spec_id: int) -> int:
    return int(pc.sum(pc.equal(metadata.manifests["partition_spec_id"], spec_id)).as_py() or 0)


def _sort_refusal(metadata: PlanningMetadata, spec_id: int, sort_by: Sequence[str]) -> str | None:
    names = [field.name for field in metadata.info.specs[spec_id].fields]
    unknown = [name for name in sort_by if name not in names]
    if unknown:
        known = ", ".join(map(repr, names)) or "none"
        return (
            f"sort field(s) {', '.join(map(repr, unknown))} are not partition fields of spec {spec_id}; it has {known}"
        )
    if len(set(sort_by)) != len(sort_by):
        return f"sort fields {list(sort_by)} name a field twice"
    odd = [name for name in sort_by if "." in name or "`" in name]
    if odd:
        return f"Iceberg cannot sort by a partition field with a dot or back quote in its name ({odd[0]!r})"
    return None


def used_specs(metadata: PlanningMetadata) -> list[int]:
    """The specs that have manifests in the measured snapshot, sorted."""
    return sorted(set(metadata.manifests["partition_spec_id"].to_pylist()))


def decide_specs(
    metadata: PlanningMetadata,
    request: MaintenanceRequest,
    workload: Workload,
    orders: Mapping[int, Sequence[tuple[str, ...]]] | None = None,
) -> list[SpecDecision]:
    """Decisions on the requested spec, or on every spec with manifests, each on top of the ones before it.

    Args:
        metadata: the recorded snapshot.
        request: what is asked for.
        workload: the queries that a rewrite must pay for.
        orders: where nobody asked for an order: others than a spec's own that may be chosen, by spec. One is chosen
            where planning gets notably cheaper by it.

    Raises:
        InputError: when the table has no such spec, or no spec that could be sorted as requested.
    """
    _check_request(metadata, request)
    specs = [request.spec_id] if request.spec_id is not None else used_specs(metadata)
    decisions: list[SpecDecision] = []
    state = metadata
    for spec_id in specs:
        decision = _decide(state, spec_id, request, workload)
        for order in (orders or {}).get(spec_id, ()):
            sorted_so = request.model_copy(update={"sort_by": list(order)})
            decision = _cheaper(decision, _decide(state, spec_id, sorted_so, workload))
        decisions.append(decision)
        if decision.worthwhile and decision.prediction is not None:
            state = decision.prediction.metadata
    return decisions


def _cheaper(decision: SpecDecision, other: SpecDecision) -> SpecDecision:
    if not other.worthwhile or (decision.worthwhile and other.cost > decision.cost * (1 - WORTHWHILE)):
        return decision
    instead = f", × {other.cost / decision.cost:.2f} of that in the spec's own order" if decision.worthwhile else ""
    return replace(other, reason=f"{other.reason}{instead}, sorted by {', '.join(other.sort_by)}")


def _decide(metadata: PlanningMetadata, spec_id: int, request: MaintenanceRequest, workload: Workload) -> SpecDecision:
    """A trim where it is asked for and removes something; else Iceberg's rewrite, where that is asked for."""
    trim = decide_trim(metadata, spec_id, request, workload) if request.trims else None
    if trim is not None and (trim.worthwhile or trim.refused or not request.rewrites_manifests):
        return trim
    rewrite = decide_spec(metadata, spec_id, target_of(metadata, request), request.sort_by, workload)
    return rewrite if trim is None else replace(rewrite, reason=f"{trim.reason}; {rewrite.reason}")


def _check_request(metadata: PlanningMetadata, request: MaintenanceRequest) -> None:
    specs = metadata.info.specs
    if request.spec_id is not None and request.spec_id not in specs:
        raise InputError(f"spec {request.spec_id} does not exist; expected one of {', '.join(map(str, sorted(specs)))}")
    candidates = [request.spec_id] if request.spec_id is not None else sorted(specs)
    refusals = [_sort_refusal(metadata, spec_id, request.sort_by) for spec_id in candidates]
    if request.sort_by and all(refusals):
        raise InputError(str(refusals[-1]))


def effect_of(before: PlanningMetadata, after: PlanningMetadata, workload: Workload) -> dict[str, Any]:
    """The difference between two states of a table, measured or predicted, in the result's shape."""
    earlier, later = layout_of(before), layout_of(after)
    means = {(field.spec_id, field.field): field.mean for field in later.overlap}
    numbers: dict[str, int] = {}
    for name in _EFFECTS:
        numbers |= {f"{name}_before": getattr(earlier, name), f"{name}_after": getattr(later, name)}
    return {
        **numbers,
        "overlap": [
            {
                "spec_id": field.spec_id,
                "field": field.field,
                "mean_before": field.mean,
                "mean_after": means.get((field.spec_id, field.field)),
            }
            for field in earlier.overlap
        ],
        "queries": _queries(workload.opened(before), workload.opened(after)),
    }


def _queries(before: Sequence[Opened], after: Sequence[Opened]) -> list[dict[str, Any]]:
    return [
        {
            "name": earlier.query.name,
            "where": earlier.query.where,
            "manifests_before": len(earlier.ordinals),
            "manifests_after": len(later.ordinals),
            "metadata_bytes_before": earlier.metadata_bytes,
            "metadata_bytes_after": later.metadata_bytes,
        }
        for earlier, later in zip(before, after, strict=True)
    ]


def rewrite_proposal(
    request: MaintenanceRequest, decision: SpecDecision, workload: Workload, earlier: Sequence[str] = ()
) -> dict[str, Any]:
    """The proposal to rewrite one spec's manifests; ``earlier`` names the rewrites that it is predicted on top of."""
    if decision.prediction is None:
        raise ValueError("only a predicted rewrite can be proposed")
    metadata, info = decision.base, decision.base.info
    next_append, note = _after_next_append(decision.prediction.metadata, target_of(metadata, request))
    action = decision.action
    return {
        "id": f"{action}_spec_{decision.spec_id}",
        "action": action,
        "title": f"{_TITLES[action]} of spec {decision.spec_id}",
        "why": decision.reason,
        "spec_id": decision.spec_id,
        "sort_by": list(decision.sort_by),
        "commands": [decision.command(info.name, decision.sort_by)],
        "undo": rollback_commands(info),
        "predicted": effect_of(metadata, decision.prediction.metadata, workload),
        "after_next_append": next_append,
        "risk": _rewrite_risk(metadata, f"{_TRIM_RISK} {note}" if decision.trims else note, earlier),
        "params": {
            "actions": [action],
            "spec_id": decision.spec_id,
            "sort_by": list(decision.sort_by),
            "target_manifest_bytes": request.target_manifest_bytes,
        },
    }


def rollback_commands(info: TableInfo) -> list[str]:
    """What makes the measured snapshot the current one again; nothing for a table without one."""
    return [commands.rollback(info.name, info.snapshot_id)] if info.snapshot_id is not None else []


def trim_proposals(metadata: PlanningMetadata, asked: MaintenanceRequest, workload: Workload) -> list[dict[str, Any]]:
    """Trims that pay beside what is asked, by the metrics properties that are set or asked for.

    Raises:
        InputError: when the properties do not fit the table.
    """
    actions = ["set_properties"] * asked.sets_properties + ["trim_statistics"]
    request = asked.model_copy(update={"actions": actions})
    found: list[dict[str, Any]] = []
    for decision in decide_specs(metadata, request, workload):
        prediction, before = decision.prediction, decision.base.metadata_bytes
        if prediction is None or prediction.metadata.metadata_bytes > before * (1 - WORTHWHILE):
            continue
        proposal = rewrite_proposal(request, decision, workload, [item["title"] for item in found])
        properties = request.model_dump(include={"metrics_default", "metrics_columns"}) if asked.sets_properties else {}
        found.append(proposal | {"params": proposal["params"] | properties | {"actions": actions}})
    return found


def _rewrite_risk(metadata: PlanningMetadata, note: str, earlier: Sequence[str]) -> str:
    parts = [
        f"Predicted on top of: {', '.join(earlier)}. The numbers before are those that it leaves, and going back "
        "undoes both."
        if earlier
        else "",
        "Metadata only: no data file is touched, and rows, files and sequence numbers are compared before and after.",
        "Undo it only while no other commit has followed: a rollback would lose that commit.",
        note,
    ]
    if metadata.info.format_version >= 3:
        parts.append("Format version 3: next-row-id grows with the rewrite; row ids themselves stay.")
    return " ".join(part for part in parts if part)


def _after_next_append(predicted: PlanningMetadata, target: int) -> tuple[dict[str, Any], str]:
    """The layout after the next append, and what to say of it: nothing while the layout lasts."""
    later = predict_next_append(predicted, target)
    layout, lasting = layout_of(later), layout_of(predicted)
    numbers = {
        "manifests": layout.manifests,
        "metadata_bytes": layout.metadata_bytes,
        "overlap": [{"spec_id": item.spec_id, "field": item.field, "mean": item.mean} for item in layout.overlap],
    }
    if later is predicted:
        return numbers, ""
    return numbers, (
        f"The next append will merge these {lasting.manifests} manifests into {layout.manifests}, since neighbours "
        f"fit into {target:,} bytes together: Spark and other Java writers do so, PyIceberg only with "
        f"{MERGE_ENABLED} = true. planning-health advise-layout says whether that costs planning notable time, and "
        "what keeps the layout then."
    )


def property_proposal(
    metadata: PlanningMetadata, request: MaintenanceRequest, plan: PropertyPlan, workload: Workload
) -> dict[str, Any]:
    """The proposal to set properties."""
    return {
        "id": "set_properties",
        "action": "set_properties",
        "title": "Set table properties",
        "why": "; ".join(
            f"{change.key}: {change.before or 'not set'} → {change.after or 'not set'}" for change in plan.changes
        ),
        "spec_id": None,
        "sort_by": [],
        "commands": plan.commands(metadata.info.name),
        "undo": plan.undo(metadata.info.name),
        "predicted": effect_of(metadata, metadata, workload),
        "risk": f"{_TRIMMED_LATER if request.trims else _NOT_TRIMMED} " + " ".join(plan.notes),
        "params": {
            "actions": ["set_properties"],
            "metrics_default": request.metrics_default,
            "metrics_columns": request.metrics_columns,
            "target_manifest_bytes": request.target_manifest_bytes,
        },
    }


def headline_of(predicted: Mapping[str, Any]) -> dict[str, int | float | None]:
    """The headline numbers of an effect."""
    return {
        name: predicted[name]
        for name in ("manifests_before", "manifests_after", "metadata_bytes_before", "metadata_bytes_after")
    }
