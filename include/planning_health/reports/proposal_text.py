"""A proposal in Markdown, for the person who approves it: the exact changes, the predicted effect, the risk."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from planning_health.envelope import ResultFile
from planning_health.reports.markdown import code, code_block, escape
from planning_health.reports.wording import change


def proposal_text(result: ResultFile) -> str:
    """What maintenance would do to a table, in Markdown."""
    proposals = result.data["proposals"]
    heading = f"**Table** {code(result.table)}, snapshot {result.snapshot_id}"
    if not proposals:
        return f"{heading}\n\nNothing to do: {escape(result.data['no_op_reason'])}."
    return "\n\n".join([heading, *(_proposal(proposal) for proposal in proposals)])


def _proposal(proposal: Mapping[str, Any]) -> str:
    predicted = proposal["predicted"]
    overlap = [
        f"- manifests for one {code(field['field'])}, mean: {change(field['mean_before'], field['mean_after'])}"
        for field in predicted["overlap"]
        if field["mean_before"] is not None
    ]
    effect = [
        f"- manifests: {change(predicted['manifests_before'], predicted['manifests_after'])}",
        f"- metadata: {change(predicted['metadata_bytes_before'], predicted['metadata_bytes_after'], 'bytes')}",
        *overlap,
    ]
    return "\n\n".join(
        [
            f"### {escape(proposal['title'])}",
            escape(proposal["why"]),
            "Exact changes:\n\n" + _code(proposal["commands"]),
            "Predicted effect:\n\n" + "\n".join(effect),
            "To undo it:\n\n" + _code(proposal["undo"]),
            f"Risk: {escape(proposal['risk'])}",
        ]
    )


def _code(statements: list[str]) -> str:
    return code_block([f"{statement};" for statement in statements]) if statements else "nothing"
