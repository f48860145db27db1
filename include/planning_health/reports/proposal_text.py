"""A proposal in Markdown, for the person who approves it: the exact changes, the predicted effect, the risk."""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import groupby
from typing import Any, Final

from planning_health.envelope import ResultFile
from planning_health.reports.command_line import PROGRAM, with_settings
from planning_health.reports.effects import predicted_effect
from planning_health.reports.markdown import code, code_block, escape
from planning_health.wording import quantity, sentence, short_unit

_WIDTH: Final = 100
"""Characters beyond which a statement is broken into lines: Airflow cuts longer ones."""

_QUOTED_OR_COMMA: Final = re.compile(r"('(?:[^'\\]|\\.|'')*'|`[^`]*`)|, ")

_TRIM: Final = (
    "Each data manifest of the spec is written again without the statistics that the metrics configuration does not "
    "ask for, merged and clustered by partition, in one commit. No released procedure of Iceberg's does this; "
    "`--no-rewrite` only says that `rewrite_manifests`, which would copy the statistics, is not run as well."
)


def proposal_text(result: ResultFile, settings_file: str | None = None) -> str:
    """What maintenance would do to a table, in Markdown; shell commands name the settings file with ``--settings``."""
    proposals = result.data["proposals"]
    heading = f"**Table** {code(result.table)}, snapshot {result.snapshot_id}"
    if not proposals:
        return f"{heading}\n\nNothing to do: {escape(result.data['no_op_reason'])}."
    return "\n\n".join([heading, *(_proposal(proposal, settings_file) for proposal in proposals)])


def _proposal(proposal: Mapping[str, Any], settings_file: str | None) -> str:
    parts = [
        f"### {escape(proposal['title'])}",
        escape(sentence(proposal["why"])),
        "**Exact changes**\n\n" + _changes(proposal["commands"], settings_file),
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


def _changes(statements: list[str], settings_file: str | None) -> str:
    trims = any(s.startswith(PROGRAM) and " --trim " in s for s in statements)
    return "\n\n".join([*([_TRIM] * trims), _code([with_settings(s, settings_file) for s in statements])])


def _code(statements: list[str]) -> str:
    """Statements in their order, SQL and shell commands in blocks of their own."""
    blocks = [
        code_block([*group], "sh") if in_shell else code_block([f"{_in_lines(s)};" for s in group])
        for in_shell, group in groupby(statements, lambda statement: statement.startswith(PROGRAM))
    ]
    return "\n\n".join(blocks)


def _in_lines(statement: str) -> str:
    """A long statement with a line for each of the parts that commas outside of quotes tell apart."""
    if len(statement) <= _WIDTH:
        return statement
    return _QUOTED_OR_COMMA.sub(lambda found: found[1] or ",\n  ", statement)
