"""Which findings a proposal answers: the order in which proposals are shown, and whether an unasked one is needed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

HEAVY_STATISTICS: Final = "heavy_statistics"
"""Rule of the findings on columns whose statistics no query uses."""

_MANIFESTS: Final = frozenset(
    {
        "wide_manifests",
        "overlapping_manifests",
        "high_deleted_ratio",
        "too_many_manifests",
        "large_manifest",
        "wrong_manifest_lengths",
        "entries_outside_summary",
        "inverted_summaries",
    }
)
_RULES: Final[dict[str, frozenset[str]]] = {
    "rewrite_manifests": _MANIFESTS,
    "set_properties": frozenset({HEAVY_STATISTICS}),
    "trim_statistics": _MANIFESTS | {HEAVY_STATISTICS},
    "recommend_rewrite_data_files": frozenset({"small_files"}),
    "recommend_compact_deletes": frozenset({"many_delete_files"}),
    "recommend_remove_dangling_deletes": frozenset({"dangling_deletes"}),
    "recommend_expire_snapshots": frozenset({"many_snapshots"}),
}
"""By action, the rules of the findings that it removes or makes smaller."""


def answered(proposal: Mapping[str, Any], findings: Sequence[Mapping[str, Any]]) -> list[str]:
    """The ids of the findings that a proposal answers, the worst first.

    A rewrite answers the findings of its own partition spec, and those of the whole table.
    """
    rules = _RULES.get(str(proposal["action"]), frozenset())
    spec_id = proposal.get("spec_id")
    return [
        str(finding["id"])
        for finding in findings
        if str(finding["id"]).split(":")[0] in rules and _concerns(str(finding["scope_key"]), spec_id)
    ]


def by_urgency(proposals: Sequence[dict[str, Any]], findings: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The proposals with the findings that they answer under ``answers``, the one for the worst finding first.

    Proposals of one action stay together and in their order: each rewrite is predicted on top of those before it.
    """
    order = {str(finding["id"]): rank for rank, finding in enumerate(findings)}
    told = [proposal | {"answers": answered(proposal, findings)} for proposal in proposals]
    urgency: dict[str, int] = {}
    for proposal in told:
        rank = min((order[finding] for finding in proposal["answers"]), default=len(order))
        urgency[proposal["action"]] = min(rank, urgency.get(proposal["action"], rank))
    return sorted(told, key=lambda proposal: urgency[proposal["action"]])


def _concerns(scope_key: str, spec_id: int | None) -> bool:
    return spec_id is None or not scope_key or scope_key.split(".")[0] == str(spec_id)
