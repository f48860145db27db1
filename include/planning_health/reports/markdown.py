"""The report as Markdown that is short enough for a chat message: lists, no wide tables, no figures."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from planning_health.pages.links import in_airflow
from planning_health.reports.decisions import how_to_decide
from planning_health.reports.model import Action, Proposal, QueryCost, Report, TableReport
from planning_health.wording import (
    change,
    day,
    moment,
    of_total,
    percentage,
    quantity,
    relative,
    rough_time,
    sentence,
    short_unit,
    state_name,
    visible,
    visible_lines,
)

MAX_LINES: Final = 40
"""Lines of a list before the rest is counted only."""

_SPECIAL: Final = re.compile(r"[\\`*\[\]|~@$]|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])")
_LINKS: Final = re.compile(r"(?i)\b(https?|ftp|mailto|www)([:.])")


def escape(text: object) -> str:
    """Plain text as Markdown: no formatting, link, mention, HTML or block can come out of it."""
    plain = visible(text)
    escaped = _SPECIAL.sub(r"\\\g<0>", plain.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;"))
    escaped = _LINKS.sub(r"\1\\\2", escaped)
    number = re.match(r"\d+(?=[.)])", escaped)
    if number:
        return f"{number.group()}\\{escaped[number.end() :]}"
    return f"\\{escaped}" if escaped[:1] in ("#", "-", "+", "=") else escaped


def code(text: object) -> str:
    """A code span around any text: the fence is longer than any run of back quotes inside."""
    plain = visible(text)
    longest = max((len(run) for run in re.findall(r"`+", plain)), default=0)
    fence = "`" * (longest + 1)
    pad = " " if plain.startswith("`") or plain.endswith("`") or not plain else ""
    return f"{fence}{pad}{plain}{pad}{fence}"


def code_block(statements: Sequence[str], language: str = "sql") -> str:
    """Statements as a fenced block, with a fence that no statement can close."""
    lines = [visible_lines(statement) for statement in statements]
    longest = max((len(run) for line in lines for run in re.findall(r"`+", line)), default=0)
    fence = "`" * max(3, longest + 1)
    return "\n".join([f"{fence}{language}", *lines, fence])


def render_markdown(report: Report) -> str:
    """The report as Markdown."""
    proposals = _next_steps(report)
    overview = [
        [_compared(report)],
        _section("What needs attention first", _attention(report), empty="Nothing."),
        _section(
            "What got better",
            [f"- {code(i.table)}: {escape(' '.join(map(sentence, i.texts)))}" for i in report.improvements],
        ),
        _section("What to do next", proposals),
        _section(
            "Keeping it repaired",
            [
                f"- {code(t.table)}: {escape(f'{t.upkeep.text} {t.upkeep.advice}'.strip())}"
                for t in report.repaired
                if t.upkeep
            ],
        ),
        _section("State of each table", [_table_line(table) for table in report.tables], empty="No table was found."),
        _section("What changed since the last report", _changes(report)),
    ]
    blocks = [
        [f"# {escape(report.title)}"],
        [f"**{escape(report.lede)}**"] if report.lede else [],
        _section("To know before reading on", [f"- {escape(sentence(text))}" for text in report.warnings]),
        *(overview if report.is_overview else []),
        _section("What the queries make planning read", [] if report.is_overview else _queries(report), whole=True),
        _section("What if", [line for table in report.tables for line in _alternatives(table)], whole=True),
        _section(
            "The heaviest query, shared among tasks and handed out by a server",
            [line for table in report.tables for line in _simulations(table, whole=not report.is_overview)],
            whole=not report.is_overview,
        ),
        _section("Proposals", [] if report.is_overview else proposals, whole=True),
        _section("Actions taken", [_action(action) for action in report.actions]),
        _section("What the simulations cannot say", [f"- {escape(limit)}" for limit in report.limits]),
        _section("What the words mean", _glossary(report)),
        [f"{escape(f'planning-health {report.product_version}')}, run {code(report.run_id)}"],
    ]
    return "\n\n".join("\n".join(lines) for lines in blocks if lines) + "\n"


def _glossary(report: Report) -> list[str]:
    return [f"- **{escape(entry.term)}**: {escape(entry.meaning)}" for entry in report.glossary if entry.basic]


def _section(title: str, lines: list[str], *, empty: str | None = None, whole: bool = False) -> list[str]:
    """A heading and its list, cut unless ``whole``; without lines there is none, unless ``empty`` says something."""
    if not lines:
        return [f"## {title}", "", empty] if empty else []
    shown = lines if whole else lines[:MAX_LINES]
    if len(lines) > len(shown):
        shown.append(f"- … and {len(lines) - MAX_LINES} more: see the full report")
    return [f"## {title}", "", *shown]


def _compared(report: Report) -> str:
    measured = f"Measured {moment(report.measured_from)}. " if report.measured_from else ""
    if report.previous is None:
        return f"{measured}This is the first report."
    return f"{measured}Compared with the report of {moment(report.previous.created_at)}."


def _attention(report: Report) -> list[str]:
    findings = {table.table: [f for f in table.findings if f.level != "ok"] for table in report.tables}
    lines: list[str] = []
    for rank, item in enumerate(report.attention, start=1):
        lines.append(f"{rank}. **{state_name(item.level)}** {code(item.table)}: {escape(sentence(item.title))}")
        lines += [f"   {escape(sentence(item.evidence))}"] if item.evidence else []
        lines += [f"   → {escape(sentence(item.next_step))}"] if item.next_step else []
        others = findings.get(item.table, [])[1:]
        lines += [f"   Also: {escape('; '.join(finding.title for finding in others))}."] if others else []
    return lines


def _table_line(table: TableReport) -> str:
    was = f", was {state_name(table.previous_state)}" if table.previous_state not in (None, table.state) else ""
    told = f" {escape(table.planning_told)}" if table.planning_told and table.state in ("critical", "warning") else ""
    snapshot = f" (snapshot {table.snapshot_id})" if table.snapshot_id is not None and table.state != "failed" else ""
    return (
        f"- **{state_name(table.state)}**{was} {code(table.table)}: {escape(sentence(table.verdict))}{told}{snapshot}"
    )


def _changes(report: Report) -> list[str]:
    changes = report.changes
    lines = [
        f"- {code(s.table)}: {state_name(s.before)} → {state_name(s.after)}"
        for s in changes.states
        if s.direction != "better"
    ]
    lines += [f"- {code(f.table)}: new: {escape(f.title)} ({state_name(f.level)})" for f in changes.new_findings]
    for title, names in (("Measured for the first time", changes.new_tables), ("No longer there", changes.gone_tables)):
        lines += [f"- {title}: {', '.join(map(code, names))}"] if names else []
    lines += [
        f"- {code(n.table)}: {escape(n.label)} {change(n.before, n.after, n.unit)} ({relative(n.before, n.after)})"
        for n in changes.numbers
    ]
    return lines


def _queries(report: Report) -> list[str]:
    """What planning each query reads, as a single run looks at one table."""
    return [
        f"- {code(table.table)}: {escape(query.name)}{' (heaviest)' if query.heaviest else ''}, "
        f"{code(query.where)}: manifests "
        f"{of_total(query.manifests_opened, query.manifests_total)}, data files "
        f"{of_total(query.files_result, query.files_total)}, metadata {quantity(query.metadata_bytes, 'bytes')}"
        + _planned_in(query)
        + (f"; {escape(query.note)}" if query.note else "")
        for table in report.tables
        for query in table.queries
    ]


def _planned_in(query: QueryCost) -> str:
    if query.planning_ms is not None:
        return f", planned by Iceberg in {quantity(query.planning_ms, 'ms')}"
    return "" if query.predicted_ms is None else f", planned in (predicted) {rough_time(query.predicted_ms)}"


def _simulations(table: TableReport, *, whole: bool) -> list[str]:
    """One line a simulation; all its rows and notes when a single run was about it."""
    lines = []
    for item in table.simulations:
        told = item.text if whole else item.summary
        lines += [f"- {code(table.table)}: {escape(sentence(told))}"] if told else []
        if whole:
            lines += [
                "  - " + escape("; ".join(map(": ".join, zip(item.columns, row, strict=True)))) for row in item.rows
            ]
            lines += [f"  - {escape(sentence(note))}" for note in item.notes]
    return lines


def _alternatives(table: TableReport) -> list[str]:
    return [
        line
        for item in table.alternatives
        for line in (
            f"- {code(table.table)}: **{escape(item.title)}**: {escape(sentence(item.summary))}",
            *(
                f"  - {escape(row.name)}: manifests {row.manifests[0]} → {row.manifests[1]}, data files "
                f"{row.data_files[0]} → {row.data_files[1]}, metadata {quantity(row.metadata_bytes[0], 'bytes')} → "
                f"{quantity(row.metadata_bytes[1], 'bytes')}"
                for row in item.reads
            ),
            *(f"  - {escape(sentence(note))}" for note in item.notes),
        )
    ]


def _next_steps(report: Report) -> list[str]:
    """What waits for a decision and what is recommended, as on the page, with what to run or where to click."""
    lines = [escape(how_to_decide(report)), ""] if report.summary.proposals and not report.is_decided else []
    for table, proposal in report.next_steps:
        predicted = f" Predicted: {escape(sentence(proposal.summary))}" if proposal.summary else ""
        notes = "".join(f" {escape(sentence(note))}" for note in (proposal.caution, proposal.approval) if note)
        lines.append(
            f"- {code(table.table)}: {escape(sentence(proposal.title))}{predicted}{notes}{_how(report, proposal)}"
        )
    return lines


def _how(report: Report, proposal: Proposal) -> str:
    if report.is_decided:
        return ""
    if not proposal.runnable:
        return f" Recommended, and left to you to run: {', '.join(map(code, proposal.commands))}"
    link = f" [Open the form]({in_airflow(report.airflow_url, proposal.page)})" if report.airflow_url else ""
    return f" {code(proposal.dry_run_command)}{link}"


def _action(action: Action) -> str:
    line = f"- {day(action.at)} {code(action.table)}: {escape(action.title)}, **{state_name(action.state)}**"
    told = [
        f"{escape(row.label)} {quantity(row.before, unit)} → {quantity(row.after, unit)} "
        f"(predicted {quantity(row.predicted, unit)}{_off(row.off)})"
        for row, unit in ((row, short_unit(row.unit)) for row in action.effect)
        if row.after is not None
    ]
    return f"{line}. {'; '.join(told) if told else escape(sentence(action.summary))}"


def _off(share: float | None) -> str:
    return f", off by {percentage(share)}" if share else ""
