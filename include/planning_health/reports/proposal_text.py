"""A proposal in Markdown, for the person who approves it: the exact changes, the predicted effect, the risk."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from planning_health.envelope import ResultFile
from planning_health.reports.effects import predicted_effect
from planning_health.reports.markdown import code, code_block, escape
from planning_health.reports.wording import quantity, sentence, short_unit

_WIDTH: Final = 100
"""Characters beyond which a statement is broken into lines: Airflow cuts longer ones."""

_QUOTED_OR_COMMA: Final = re.compile(r"('(?:[^'\\]|\\.|'')*'|`[^`]*`)|, ")

_COMMAND: Final = "planning-health "
"""How statements begin that are run in a shell."""


def proposal_text(result: ResultFile) -> str:
    """What maintenance would do to a table, in Markdown."""
    proposals = result.data["proposals"]
    heading = f"**Table** {code(result.table)}, snapshot {result.snapshot_id}"
    if not proposals:
        return f"{heading}\n\nNothing to do: {escape(result.data['no_op_reason'])}."
    return "\n\n".join([heading, *(_proposal(proposal) for proposal in proposals)])


def _proposal(proposal: Mapping[str, Any]) -> str:
    parts = [
        f"### {escape(proposal['title'])}",
        escape(sentence(proposal["why"])),
        "**Exact changes**\n\n" + _code(proposal["commands"]),
        "**Predicted effect**\n\n" + _effect(proposal["predicted"]),
    ]
    if proposal["undo"]:
        parts.append("**To undo it**\n\n" + _code(proposal["undo"]))
    return "\n\n".join([*parts, f"**Risk:** {escape(sentence(proposal['risk']))}"])


def _effect(predicted: Mapping[str, Any]) -> str:
    rows = [
        f"| {escape(row.label)} | {quantity(row.before, unit)} | {quantity(row.predicted, unit)} |"
        for row, unit in ((row, short_unit(row.unit)) for row in predicted_effect(predicted) if row.moves)
    ]
    if not rows:
        return "None on the manifests that are there now."
    return "\n".join(["| number | before | predicted |", "|---|--:|--:|", *rows])


def _code(statements: list[str]) -> str:
    return code_block([s if s.startswith(_COMMAND) else f"{_in_lines(s)};" for s in statements])


def _in_lines(statement: str) -> str:
    """A long statement with a line for each of the parts that commas outside of quotes tell apart."""
    if len(statement) <= _WIDTH:
        return statement
    return _QUOTED_OR_COMMA.sub(lambda found: found[1] or ",\n  ", statement)
