"""One table's part of the report, from its result files in the run folder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from planning_health.envelope import ResultFile
from planning_health.errors import WorkFailedError
from planning_health.identifiers import TableName
from planning_health.maintenance.answers import HEAVY_STATISTICS
from planning_health.pages.links import maintain_path
from planning_health.reports.alternatives import alternatives
from planning_health.reports.command_line import command, form_values, with_settings
from planning_health.reports.decisions import Decisions
from planning_health.reports.effects import append_sentence, effect_sentence, predicted_effect
from planning_health.reports.figure_data import Picture, file_name, table_figures
from planning_health.reports.model import (
    STATE_ORDER,
    Action,
    FailedExpectation,
    Figures,
    Finding,
    KeyNumber,
    Level,
    ManifestRow,
    Number,
    Proposal,
    QueryCost,
    Signal,
    State,
    Step,
    TableReport,
)
from planning_health.reports.reading import level, mapping, mappings, number, text, texts, whole
from planning_health.reports.simulations import simulations
from planning_health.run_folder import RunFolder
from planning_health.wording import (
    anchor,
    counted,
    plain_number,
    quantity,
    rough_time,
    sentence,
    visible,
    visible_lines,
)

TABLE_KINDS: Final = (
    "measurement",
    "validation",
    "health",
    "planning",
    "assignment",
    "plan_tasks",
    "what_if",
    "proposal",
)
QUICK_DEPTH: Final = 2.0
"""Manifests opened for one value, up to which a table is called quick to plan."""

_KIND_NAMES: Final = {
    "health": "diagnosis",
    "planning": "planning simulation",
    "assignment": "assignment simulation",
    "plan_tasks": "plan-tasks simulation",
    "proposal": "proposals",
}
_LEVEL_ORDER: Final[dict[Level, int]] = {"critical": 0, "warning": 1, "not_measured": 2, "ok": 3}


@dataclass(frozen=True)
class TableResults:
    """The result files of one table; a kind that is missing or damaged is ``None``."""

    table: TableName
    files: Mapping[str, ResultFile | None]

    @classmethod
    def read(cls, run_folder: RunFolder, table: TableName) -> TableResults:
        """Reads all kinds that the run has."""
        return cls(table, {kind: read_or_none(run_folder, kind, table) for kind in TABLE_KINDS})

    def data(self, kind: str) -> Mapping[str, Any]:
        """A kind's data, empty when it is missing or the step did not succeed."""
        file = self.files.get(kind)
        return mapping(file.data) if file is not None and file.status == "ok" else {}

    def reason(self, kind: str) -> str | None:
        """Why a kind has no data."""
        file = self.files.get(kind)
        return visible(file.reason) if file is not None and file.reason else None


def read_or_none(run_folder: RunFolder, kind: str, table: TableName | None = None) -> ResultFile | None:
    """A result file, ``None`` also when it is damaged: the report then shows "not measured"."""
    try:
        return run_folder.read_result(kind, table)
    except WorkFailedError:
        return None


def table_report(
    results: TableResults,
    *,
    measure_reason: str | None,
    actions: Sequence[Action],
    pictures: Sequence[Picture],
    with_figures: bool,
    decisions: Decisions | None = None,
) -> TableReport:
    """Builds one table's part.

    Args:
        results: the table's result files.
        measure_reason: why the table could not be measured, as the run's measure result tells it.
        actions: what was done to the table since the last report.
        pictures: the moments that the partition figures show: before a repair where there was one, and now.
        with_figures: false for the tables beyond the report's cap on figures.
        decisions: how proposals are decided where the report is read.
    """
    name = str(results.table)
    measurement = results.files.get("measurement")
    reason = _failure_reason(measurement, measure_reason)
    health = results.data("health")
    decisions = decisions or Decisions()
    proposals = _proposals(results, decisions)
    findings = [_answered(_finding(item), proposals, name, decisions) for item in mappings(health.get("findings"))]
    findings.sort(key=lambda finding: _LEVEL_ORDER[finding.level])
    state: State = "failed" if reason else level(health.get("state")) if health else "not_measured"
    numbers = _numbers(results)
    failed_expectations = _failed_expectations(results.data("validation"))
    queries = _queries(results.data("planning"))
    return TableReport(
        table=visible(name),
        anchor=anchor(name),
        state=state,
        reason=reason or (results.reason("health") if not health else None),
        verdict=_verdict(state, findings, numbers, reason),
        table_uuid=measurement.table_uuid if measurement else None,
        snapshot_id=measurement.snapshot_id if measurement else None,
        measured_at=text(results.data("measurement").get("measured_at"))
        or (measurement.created_at if measurement else None),
        recorder=text(results.data("measurement").get("recorder")) or None,
        format_version=whole(results.data("measurement").get("format_version")),
        numbers=numbers,
        findings=findings,
        steps=[_step(item, index) for index, item in enumerate(mappings(health.get("steps")), start=1)],
        signals=[_signal(item) for item in mappings(health.get("signals"))],
        worst_deleted=_manifest_rows(health, "by_deleted_ratio"),
        worst_ranges=_manifest_rows(health, "by_partition_range"),
        queries=queries,
        planning_told=_planning_told(queries),
        statistics_told=visible(results.data("proposal").get("statistics_told") or ""),
        proposals=proposals,
        alternatives=alternatives(results.data("what_if")),
        simulations=simulations(results.data("assignment"), results.data("plan_tasks")),
        no_op_reason=visible(results.data("proposal").get("no_op_reason") or "") or None,
        actions=list(actions),
        failed_expectations=failed_expectations,
        missing=[] if reason else _missing(results),
        failed_steps=[] if reason else _failed_steps(results),
        figures=table_figures(pictures, results.data("assignment"), results.data("plan_tasks"))
        if with_figures
        else Figures(),
    )


def _failure_reason(measurement: ResultFile | None, measure_reason: str | None) -> str | None:
    if measurement is not None and measurement.status != "ok":
        return visible(measurement.reason or measure_reason or "the measurement failed without a reason")
    return visible(measure_reason) if measure_reason else None


def _missing(results: TableResults) -> list[str]:
    missing: list[str] = []
    for kind, name in _KIND_NAMES.items():
        file = results.files.get(kind)
        if file is None or file.status != "ok":
            reason = results.reason(kind)
            missing.append(f"{name}: {reason}" if reason else name)
    return missing


def _failed_steps(results: TableResults) -> list[str]:
    """Steps that ended with an error, with the reason: what they would have found is not known."""
    return [
        f"{name}: {visible(file.reason or 'no reason was given')}"
        for kind, name in _KIND_NAMES.items()
        if (file := results.files.get(kind)) is not None and file.status == "failed"
    ]


def _answered(finding: Finding, proposals: Sequence[Proposal], table: str, decisions: Decisions) -> Finding:
    """The finding with the proposal that answers it as what to do, so that both say the same.

    Without a known query nothing can be proposed about statistics: then the command that advises is named.
    """
    if answer := answer_to(finding, proposals):
        return finding.model_copy(update={"recommendation": f"{answer.title}, as proposed"})
    if finding.id.startswith(HEAVY_STATISTICS):
        advise = visible(command(["advise-metrics", table], decisions.settings_file))
        told = f"{sentence(finding.recommendation)} Which columns these are, {advise} tells from the table's queries: "
        told += "list them in the settings, or add --event-log with Spark's event logs."
        return finding.model_copy(update={"recommendation": told})
    return finding


def answer_to(finding: Finding, proposals: Sequence[Proposal]) -> Proposal | None:
    """The first proposal that can be carried out and removes a finding or makes it smaller."""
    return next((item for item in proposals if item.runnable and finding.id in item.answers), None)


def _finding(item: Mapping[str, Any]) -> Finding:
    return Finding(
        id=text(item.get("id")) or text(item.get("title")),
        title=visible(text(item.get("title")) or "Finding"),
        level=level(item.get("level")),
        signal=visible(text(item.get("signal"))),
        scope_key=visible(text(item.get("scope_key"))),
        value=number(item.get("value")),
        unit=visible(text(item.get("unit"))),
        threshold=number(item.get("threshold")),
        evidence=visible(_evidence(item.get("evidence"))),
        explanation=visible(text(item.get("explanation"))),
        recommendation=visible(text(item.get("recommendation"))),
    )


def _evidence(value: Any) -> str:
    if isinstance(value, list):
        return "; ".join(_evidence(item) for item in value)
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {_evidence(item)}" for key, item in value.items())
    return text(value)


def _step(item: Mapping[str, Any], index: int) -> Step:
    return Step(
        step=whole(item.get("step")) or index,
        title=visible(text(item.get("title"))),
        level=level(item.get("level")),
        evidence=visible(_evidence(item.get("evidence"))),
    )


def _signal(item: Mapping[str, Any]) -> Signal:
    return Signal(
        scope=visible(text(item.get("scope"))),
        scope_key=visible(text(item.get("scope_key"))),
        signal=visible(text(item.get("signal"))),
        value=number(item.get("value")),
        unit=visible(text(item.get("unit"))),
        level=level(item.get("level")),
    )


def _manifest_rows(health: Mapping[str, Any], name: str) -> list[ManifestRow]:
    lists = mapping(health.get("lists"))
    both = set(texts(lists.get("in_both")))
    by_path = {text(manifest.get("path")): manifest for manifest in mappings(health.get("manifests"))}
    rows: list[ManifestRow] = []
    for item in mappings(lists.get(name)):
        path = text(item.get("path"))
        known = {**by_path.get(path, {}), **item}
        widest = _widest(mappings(known.get("ranges")))
        rows.append(
            ManifestRow(
                name=file_name(path),
                path=visible(path),
                deleted_ratio=number(known.get("deleted_ratio")),
                range_text=_range_text(widest),
                range_days=number(known.get("range_days")) or number(widest.get("range_days")),
                entries=whole(known.get("entries")),
                live=known.get("live_entries") != 0,
                in_both=path in both,
            )
        )
    return rows


def _widest(ranges: list[Mapping[str, Any]]) -> Mapping[str, Any]:
    return max(ranges, key=lambda item: number(item.get("range_days")) or number(item.get("range")) or 0, default={})


def _range_text(found: Mapping[str, Any]) -> str:
    if not found.get("lower_display") or not found.get("upper_display"):
        return ""
    return visible(f"{found.get('field')}: {found['lower_display']} to {found['upper_display']}")


def _queries(planning: Mapping[str, Any]) -> list[QueryCost]:
    heaviest = planning.get("heaviest")
    return [_query(item, heaviest) for item in mappings(planning.get("predicates"))] + [
        QueryCost(
            name=visible(text(item.get("name"))),
            where=visible(text(item.get("where"))),
            planned=False,
            note=f"not planned: {visible(text(item.get('reason')))}",
        )
        for item in mappings(planning.get("not_planned"))
    ]


def _planning_told(queries: Sequence[QueryCost]) -> str:
    """How long planning takes, in a sentence: a bad state alone does not tell milliseconds from minutes."""
    measured = max((query.planning_ms for query in queries if query.planning_ms is not None), default=None)
    if measured is not None:
        return f"Iceberg planned the slowest of its queries in {rough_time(measured)}."
    predicted = max((query.predicted_ms for query in queries if query.predicted_ms is not None), default=None)
    if predicted is None:
        return ""
    return f"Predicted, not measured: the slowest of its queries plans in {rough_time(predicted)}."


def _query(item: Mapping[str, Any], heaviest: Any) -> QueryCost:
    data_manifests, delete_manifests = mapping(item.get("data_manifests")), mapping(item.get("delete_manifests"))
    files = mapping(item.get("data_files"))
    notes = [f"not pushed down: {visible(part)}" for part in texts(item.get("not_pushed_down"))]
    notes += [f"not recorded, so it might match: {visible(part)}" for part in texts(item.get("not_recorded"))]
    return QueryCost(
        name=visible(text(item.get("name")) or text(item.get("where"))),
        where=visible(text(item.get("where"))),
        weight=float(number(item.get("weight")) or 1.0),
        manifests_total=_sum(data_manifests.get("total"), delete_manifests.get("total")),
        manifests_opened=_sum(data_manifests.get("scanned"), delete_manifests.get("scanned")),
        files_total=whole(files.get("total")),
        files_result=whole(files.get("result")),
        metadata_bytes=whole(item.get("metadata_bytes")),
        planning_ms=number(mapping(item.get("measured")).get("median_ms")),
        predicted_ms=number(item.get("predicted_ms")),
        tasks=whole(item.get("tasks")),
        heaviest=heaviest is not None and item.get("name") == heaviest,
        note="; ".join(notes),
    )


def _sum(first: Any, second: Any) -> int | None:
    found = whole(first)
    return None if found is None else found + (whole(second) or 0)


def _proposals(results: TableResults, decisions: Decisions) -> list[Proposal]:
    items = mappings(results.data("proposal").get("proposals"))
    return [_proposal(results, decisions, item, index) for index, item in enumerate(items)]


def _proposal(results: TableResults, decisions: Decisions, item: Mapping[str, Any], index: int) -> Proposal:
    table = str(results.table)
    rows = predicted_effect(mapping(item.get("predicted")), mapping(item.get("after_next_append")))
    params = mapping(item.get("params"))
    return Proposal(
        id=text(item.get("id")) or str(index),
        action=text(item.get("action")),
        title=visible(text(item.get("title")) or text(item.get("action")).replace("_", " ").capitalize()),
        why=visible(text(item.get("why"))),
        risk=visible(text(item.get("risk"))),
        run_command=visible_lines(decisions.command(table, params)),
        needs=visible(decisions.needs(results.table, params)),
        approval=visible(decisions.approval(results.table, params, _headline(results.files.get("proposal")))),
        params=dict(params),
        commands=[visible_lines(with_settings(line, decisions.settings_file)) for line in texts(item.get("commands"))],
        undo=[visible_lines(command) for command in texts(item.get("undo"))],
        effect=rows,
        summary=effect_sentence(rows, measured=False),
        caution=append_sentence(rows),
        form=visible(form_values(table, params)),
        page=maintain_path(table, text(item.get("id")) or str(index)),
        answers=texts(item.get("answers")),
    )


def _failed_expectations(validation: Mapping[str, Any]) -> list[FailedExpectation]:
    """The failed checks of a measurement that cannot be trusted; expectations on health are findings already."""
    if not validation.get("blocking"):
        return []
    failed = [
        FailedExpectation(
            name=visible(text(item.get("name")).replace("_", " ")),
            observed=visible(_evidence(item.get("observed"))),
            expected=visible(_evidence(item.get("expected"))),
        )
        for item in mappings(validation.get("expectations"))
        if item.get("success") is False and item.get("suite") in (None, "integrity")
    ]
    return failed or [
        FailedExpectation(name=visible(validation.get("reason") or "the measurement could not be checked"))
    ]


def _numbers(results: TableResults) -> list[KeyNumber]:
    """The numbers that every table has in the overview; ``None`` where the run did not measure them."""
    health = results.data("health")
    signals = _table_signals(health)
    manifests = mappings(health.get("manifests"))
    headline = _headline(results.files.get("measurement"))
    deepest = max(mappings(health.get("overlap")), key=lambda item: number(item.get("mean")) or 0, default={})
    scanned = [item for item in manifests if item.get("live_entries") != 0]  # scans pass the others over
    ratios = [ratio for item in scanned if (ratio := number(item.get("deleted_ratio"))) is not None]
    manifest_count = _known(signals, "manifest_count", "manifests", default=number(headline.get("manifests")))
    lengths = [number(item.get("length")) for item in manifests]
    listed = sum(length for length in lengths if length is not None) if len(lengths) == manifest_count else None
    field = visible(text(deepest.get("field")))
    return [
        KeyNumber(key="manifests", label="Manifests", value=manifest_count, unit="count"),
        KeyNumber(
            key="metadata_bytes",
            label="Metadata size",
            value=_known(signals, "manifest_bytes", "metadata_bytes", default=listed),
            unit="bytes",
        ),
        KeyNumber(
            key="data_files",
            label="Data files",
            value=_known(
                signals, "data_files", "live_data_files", "data_file_count", default=number(headline.get("data_files"))
            ),
            unit="count",
        ),
        KeyNumber(
            key="delete_files",
            label="Delete files",
            value=_known(signals, "delete_files", "delete_file_count", default=number(headline.get("delete_files"))),
            unit="count",
        ),
        KeyNumber(
            key="overlap_mean",
            label="Manifests opened per value, mean",
            value=_rounded(number(deepest.get("mean"))),
            unit="mean",
            note=field,
        ),
        KeyNumber(
            key="overlap_worst",
            label="Manifests opened per value, worst",
            value=number(deepest.get("worst")),
            unit="count",
            note=field,
        ),
        KeyNumber(key="deleted_ratio", label="Highest deleted ratio", value=max(ratios, default=None), unit="ratio"),
    ]


def _rounded(value: Number | None) -> Number | None:
    return None if value is None else round(value, 2)


def _headline(file: ResultFile | None) -> Mapping[str, Any]:
    return file.headline if file is not None else {}


def _table_signals(health: Mapping[str, Any]) -> dict[str, Number | None]:
    return {
        text(item.get("signal")): number(item.get("value"))
        for item in mappings(health.get("signals"))
        if item.get("scope") == "table"
    }


def _known(signals: Mapping[str, Number | None], *names: str, default: Number | None) -> Number | None:
    return next((value for name in names if (value := signals.get(name)) is not None), default)


def _verdict(state: State, findings: list[Finding], numbers: list[KeyNumber], reason: str | None) -> str:
    """One sentence on the table."""
    if reason:
        return f"Could not be measured: {reason}"
    if state == "not_measured":
        return "Was not diagnosed in this run."
    if state != "ok" and findings:
        worst = findings[0]
        more = len([finding for finding in findings if finding.level != "ok"]) - 1
        return worst.title + (f", and {counted(more, 'more finding')}" if more > 0 else "")
    return _healthy({item.key: item for item in numbers})


def _healthy(numbers: Mapping[str, KeyNumber]) -> str:
    manifests, mean = numbers["manifests"].value, numbers["overlap_mean"]
    if not manifests:
        return "Empty: there is nothing to plan." if manifests == 0 else "No finding."
    if mean.value is None:
        return f"No finding; {quantity(manifests, 'manifests')}."
    opened = plain_number(round(mean.value, 1))
    if mean.value > QUICK_DEPTH:
        return f"No finding; a query for one {mean.note} opens {opened} of {quantity(manifests, 'manifests')}."
    return f"Quick to plan: a query for one {mean.note} opens {opened} of {quantity(manifests, 'manifests')}."


def by_urgency(tables: list[TableReport]) -> list[TableReport]:
    """The most urgent tables first, of the others those that something was done to, then by name."""
    return sorted(tables, key=lambda table: (STATE_ORDER[table.state], not table.actions, table.table))
