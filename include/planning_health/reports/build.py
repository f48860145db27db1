"""Builds the report's model from a run folder, the actions since the last report, and that report."""

from __future__ import annotations

import glob
from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, Final

from pydantic import ValidationError

import planning_health
from planning_health.errors import InputError
from planning_health.identifiers import TableName
from planning_health.maintenance.keeping import Keeping, what_keeps
from planning_health.metadata import load
from planning_health.reports.actions import actions_since, all_actions
from planning_health.reports.changes import changes_since, improvements
from planning_health.reports.decisions import Decisions
from planning_health.reports.effects import lookup_sentence
from planning_health.reports.figure_data import Picture
from planning_health.reports.glossary import glossary
from planning_health.reports.model import (
    STATE_ORDER,
    Action,
    Attention,
    Changes,
    Finding,
    PreviousReport,
    Proposal,
    Report,
    State,
    Summary,
    TableReport,
)
from planning_health.reports.reading import mapping, text, texts
from planning_health.reports.simulations import limits
from planning_health.reports.table_report import TableResults, answer_to, by_urgency, read_or_none, table_report
from planning_health.reports.trend import remembered
from planning_health.reports.upkeep import Moment, upkeep
from planning_health.run_folder import RunFolder, read_bytes, results_below
from planning_health.settings import Query
from planning_health.wording import (
    clipped,
    clock,
    counted,
    day,
    joined,
    parse_time,
    sentence,
    short_file_names,
    visible,
    week,
)

REPORT: Final = "report"
"""Kind of the run-level result that says where a run's report lies."""

MAINTENANCE: Final = "Maintenance"
SINGLE_RUNS: Final = {"table_maintenance": MAINTENANCE, "planning_what_if": "What if"}
"""Dags whose runs look at one table: what their report is called. It is not the report of the week."""

WINDOW: Final = timedelta(days=7)
"""How long an action is told at least."""

MAX_TABLES_WITH_FIGURES: Final = 40
MOST_FILES_PREDICTED: Final = 100_000
"""Tables of more files are not asked what keeps their layout: the report is to be written quickly."""

_EVIDENCE: Final = 150
_REASON: Final = 300
_NAMED: Final = 3
"""Chosen tables that the title names one by one."""
_FAILED_ACTIONS: Final = frozenset({"failed", "verification_failed", "conflict"})


def build_report(run_folder: RunFolder, decisions: Decisions | None = None, *, chosen: bool = False) -> Report:
    """Builds the report of one run.

    Result files that are missing or damaged are shown as "not measured"; nothing is raised for them.

    Args:
        run_folder: the run's folder.
        decisions: how proposals are decided where the report is read.
        chosen: whether the run was asked for some tables only: the report is then about these alone.
    """
    decisions = decisions or Decisions()
    home = run_folder.home
    measure = read_or_none(run_folder, "measure")
    started = parse_time(measure.created_at if measure else None)
    single = SINGLE_RUNS.get(run_folder.dag_id)
    previous = None if single else previous_report(run_folder, started)
    since = _window_start(previous, started)
    everything = all_actions(home)
    actions = actions_since(everything, since, run_folder.run_id)
    failures = {visible(name): text(why) for name, why in mapping(_data(measure).get("failed")).items()}
    names = _table_names(run_folder, [*texts(_data(measure).get("tables")), *mapping(_data(measure).get("failed"))])
    if single:
        actions = [action for action in actions if action.run_id == visible(run_folder.run_id)]
    elif chosen:
        shown = {visible(str(name)) for name in names}
        actions = [action for action in actions if action.table in shown]
        previous = _narrowed(previous, shown) if previous else None
    results = [TableResults.read(run_folder, name) for name in names]
    drawn = _tables_with_figures(results, actions)
    tables = [
        table_report(
            result,
            measure_reason=failures.get(visible(str(result.table))),
            actions=(own := [action for action in actions if action.table == visible(str(result.table))]),
            pictures=_pictures(home, result, own) if result.table in drawn else [],
            with_figures=result.table in drawn,
            decisions=decisions,
        )
        for result in results
    ]
    tables = _with_upkeep(run_folder, tables, everything, decisions)
    tables = by_urgency([*tables, *_not_due(run_folder, previous, actions)])
    if previous:
        tables = _with_previous_states(tables, previous)
    changes = changes_since(previous, tables) if previous else Changes()
    dry_run = single == MAINTENANCE and _is_dry_run(results)
    measured = sorted(table.measured_at for table in tables if table.measured_at and table.state != "failed")
    summary = _summary(tables, actions)
    created_at = datetime.now(UTC).isoformat(timespec="milliseconds")
    return Report(
        scope="run" if single else "chosen" if chosen else "week",
        title=_title(tables, created_at, single=single, dry_run=dry_run, chosen=chosen),
        run_id=visible(run_folder.run_id),
        dag_id=run_folder.dag_id,
        created_at=created_at,
        measured_from=measured[0] if measured else None,
        measured_until=measured[-1] if measured else None,
        product_version=planning_health.__version__,
        actions_since=since.isoformat() if since else None,
        previous=PreviousReport(run_id=previous.run_id, created_at=previous.created_at) if previous else None,
        summary=summary,
        lede=_run_lede(tables, dry_run=dry_run) if single else _lede(summary, tables, actions),
        warnings=[*_observed_unknown(run_folder), *_warnings(tables)],
        airflow_url=decisions.airflow_url,
        attention=_attention(tables, actions),
        improvements=improvements(tables, changes),
        changes=changes,
        tables=tables,
        actions=actions,
        limits=limits(*(result.data(kind) for kind in ("assignment", "plan_tasks") for result in results)),
        glossary=glossary(
            (signal.signal for table in tables for signal in table.signals),
            simulations=any(table.figures.assignment or table.figures.plan_tasks for table in tables),
        ),
    )


def _title(tables: Sequence[TableReport], at: str, *, single: str | None, dry_run: bool, chosen: bool) -> str:
    names = sorted(table.table for table in tables)
    if single:
        return f"{single}{' (dry run)' if dry_run else ''}: {joined(names)}"
    if chosen:
        named = joined(names) if len(names) <= _NAMED else counted(len(names), "chosen table")
        return f"Planning health of {named}, {week(at)}"
    return f"Planning health, {week(at)}"


def _narrowed(report: Report, tables: Collection[str]) -> Report:
    """A report as if it had been about some of its tables only."""
    return report.model_copy(update={"tables": [table for table in report.tables if table.table in tables]})


def _observed_unknown(run_folder: RunFolder) -> list[str]:
    observed = read_or_none(run_folder, "observed")
    if observed is None or observed.status == "ok":
        return []
    return [f"The settings' event logs and scan reports were left out: {visible(observed.reason or '')}"]


def _warnings(tables: Sequence[TableReport]) -> list[str]:
    """Queries of the settings that fit no table (a query of a rule for many tables may fit some), and failed steps."""
    planned = {(query.name, query.where) for table in tables for query in table.queries if query.planned}
    unfit: dict[tuple[str, str], list[tuple[str, str]]] = {}
    for table in tables:
        for query in table.queries:
            if not query.planned and (query.name, query.where) not in planned:
                unfit.setdefault((query.name, query.where), []).append((table.table, query.note))
    return [_unfit_query(*query, places) for query, places in unfit.items()] + [
        f"{table.table}: {clipped(failed, _REASON)}" for table in tables for failed in table.failed_steps
    ]


def _unfit_query(name: str, where: str, places: Sequence[tuple[str, str]]) -> str:
    table, note = places[0]
    more = f" and {counted(len(places) - 1, 'more table')}" if len(places) > 1 else ""
    return (
        f"The settings' query {name} ({clipped(where, _EVIDENCE)}) fits no table, so nothing is told of it: "
        f"{table}{more}: {clipped(note, _REASON)}"
    )


def _with_upkeep(
    run_folder: RunFolder, tables: Sequence[TableReport], actions: Sequence[Action], decisions: Decisions
) -> list[TableReport]:
    """The tables with how fast they grow back, for those that were repaired."""
    repairs: dict[str, Action] = {}
    for action in actions:  # the newest first
        if action.stands:
            repairs.setdefault(action.table, action)
    repaired = {table.table for table in tables if table.table in repairs}
    moments = _moments(run_folder.home, repaired) if repaired else {}
    return [
        table.model_copy(
            update={
                "upkeep": upkeep(
                    table,
                    repairs.get(table.table),
                    moments.get(table.table, []),
                    decisions.settings_file,
                    partial(_keeping, run_folder, table),
                )
            }
        )
        for table in tables
    ]


def _keeping(run_folder: RunFolder, table: TableReport) -> Keeping | None:
    """What keeps a table's layout as the run measured it; ``None`` for one that it did not measure, or a huge one."""
    name = next((name for name in run_folder.tables() if visible(str(name)) == table.table), None)
    try:
        metadata = load(run_folder.metadata_url(name)) if name else None
    except Exception:  # a recording that is gone or damaged costs this sentence, not the report
        return None
    if metadata is None or len(metadata.data_files) > MOST_FILES_PREDICTED:
        return None
    planned = [query for query in table.queries if query.planned]
    return what_keeps(metadata, [Query(name=item.name, where=item.where, weight=item.weight) for item in planned])


def _moments(home: str, tables: Collection[str]) -> dict[str, list[Moment]]:
    """What the runs that are remembered measured of some tables."""
    found: dict[str, list[Moment]] = {}
    for run in remembered(home):
        for name, point in run.tables.items():
            at = parse_time(point.measured_at) or parse_time(run.at)
            if visible(name) in tables and at is not None:
                found.setdefault(visible(name), []).append(Moment(at, point.values))
    return found


def _not_due(run_folder: RunFolder, previous: Report | None, actions: Sequence[Action]) -> list[TableReport]:
    """The tables that this run was not to measure, as they were measured last."""
    names = {visible(name) for name in mapping(_data(read_or_none(run_folder, "discovery")).get("not_due"))}
    return [
        table.model_copy(update={"due": False, "actions": [item for item in actions if item.table == table.table]})
        for table in (previous.tables if previous else ())
        if table.table in names
    ]


def _window_start(previous: Report | None, started: datetime | None) -> datetime | None:
    """From when on actions are told: since the previous report, and at least of the last week.

    Reports that are made more often than weekly then still show what was repaired; ``None`` stands for all actions.
    """
    reported = parse_time(previous.created_at) if previous else None
    if reported is None:
        return None
    return min(reported, (started or datetime.now(UTC)) - WINDOW)


def _data(result: Any) -> Mapping[str, Any]:
    return mapping(result.data) if result is not None else {}


def _table_names(run_folder: RunFolder, named: Sequence[str]) -> list[TableName]:
    found = set(run_folder.tables())
    for name in named:
        try:
            found.add(TableName.parse(name))
        except InputError:
            continue
    return sorted(found)


def _tables_with_figures(results: Sequence[TableResults], actions: Sequence[Action]) -> set[TableName]:
    """The tables that figures are drawn of: those that were repaired, then the most urgent ones."""
    repaired = {action.table for action in actions}

    def urgency(result: TableResults) -> tuple[bool, int, str]:
        state = text(result.data("health").get("state"))
        return visible(str(result.table)) not in repaired, STATE_ORDER.get(state, 9), str(result.table)

    return {result.table for result in sorted(results, key=urgency)[:MAX_TABLES_WITH_FIGURES]}


def _pictures(home: str, results: TableResults, actions: Sequence[Action]) -> list[Picture]:
    """Now, and before the first successful repair where an earlier run measured the table.

    When the run measured the table before the repair, its own picture is "before", and a later run's is "after".
    """
    health = results.files.get("health")
    current = results.data("health")
    repairs = [begun for action in actions if action.succeeded and (begun := parse_time(action.started_at))]
    if not current or health is None or not repairs:
        return [Picture("Now", current)] if current else []
    repaired = min(repairs)
    last_repair = max(repairs)
    moments = _other_pictures(home, results.table) | {parse_time(health.created_at) or repaired: current}
    before = max((moment for moment in moments if moment < repaired), default=None)
    after = max((moment for moment in moments if moment > last_repair), default=None)
    written = clock if before and after and before.date() == after.date() else day
    pictures = [(before, "Before"), (after, "After")]
    chosen = [Picture(f"{name}, {written(moment.isoformat())}", moments[moment]) for moment, name in pictures if moment]
    return chosen or [Picture("Now", current)]


def _other_pictures(home: str, table: TableName) -> dict[datetime, Mapping[str, Any]]:
    """The table's health in all runs that are kept, by time."""
    results = results_below(
        home, "runs", "*", "*", "tables", glob.escape(table.catalog), table.path_segment, "health.json"
    )
    moments = ((parse_time(result.created_at), result) for result in results if result.status == "ok")
    return {moment: mapping(result.data) for moment, result in moments if moment}


def previous_report(run_folder: RunFolder, before: datetime | None) -> Report | None:
    """The published report of the run of the same Dag that was measured last before ``before``.

    ``None`` when there is none, or none that can be read.
    """
    earlier: list[tuple[datetime, str]] = []
    for result in results_below(run_folder.home, "runs", run_folder.dag_id, "*", f"{REPORT}.json"):
        measured = parse_time(text(_data(result).get("measured_at")))
        folder = text(_data(result).get("published"))
        is_another = result.run_id != run_folder.run_id
        if is_another and measured and folder and (before is None or measured < before):
            earlier.append((measured, folder))
    reports = (
        read_report(f"{run_folder.home.rstrip('/')}/{folder}/report.json") for _, folder in sorted(earlier)[::-1]
    )
    return next((report for report in reports if report is not None), None)


def read_report(url: str) -> Report | None:
    """A report's JSON; ``None`` when it does not exist or is not one that this version can read."""
    content = read_bytes(url)
    if content is None:
        return None
    try:
        return Report.model_validate_json(content)
    except ValidationError:
        return None


def _with_previous_states(tables: Sequence[TableReport], previous: Report) -> list[TableReport]:
    states: dict[str, State] = {table.table: table.state for table in previous.tables}
    return [table.model_copy(update={"previous_state": states.get(table.table)}) for table in tables]


def _summary(tables: Sequence[TableReport], actions: Sequence[Action]) -> Summary:
    states = [table.state for table in tables]
    return Summary(
        tables=len(tables),
        critical=states.count("critical"),
        warning=states.count("warning"),
        ok=states.count("ok"),
        failed=states.count("failed"),
        not_measured=states.count("not_measured"),
        proposals=sum(proposal.runnable for table in tables for proposal in table.proposals),
        actions=sum(action.stands for action in actions),
    )


def _attempts(actions: Sequence[Action]) -> list[str]:
    """What came of repairs and rollbacks, beside the repairs that stand."""
    failed = [action.kind for action in actions if action.state in _FAILED_ACTIONS]
    undone = sum(action.undone_at is not None for action in actions)
    told = [f"{counted(failed.count(kind), kind)} did not succeed." for kind in dict.fromkeys(failed)]
    return [f"A rollback undid {counted(undone, 'repair')}.", *told] if undone else told


def _states_told(summary: Summary, tables: Sequence[TableReport]) -> str:
    """How many tables need work, of those that were measured and diagnosed; one alone is named."""
    diagnosed = [table.table for table in tables if table.state in ("critical", "warning", "ok")]
    measured = len(diagnosed)
    beside = " that could be measured" if summary.failed or summary.not_measured else ""
    urgent = [
        f"{count} {singular if count == 1 else plural}"
        for count, singular, plural in (
            (summary.critical, "is critical", "are critical"),
            (summary.warning, "has a warning", "have a warning"),
        )
        if count
    ]
    if measured == 1:
        told = urgent[0].removeprefix("1 ") if urgent else "has no finding that needs work"
        only = f", the only table{beside}," if beside else ""
        return f"{diagnosed[0]}{only} {told}."
    if urgent:
        return f"Of {counted(measured, 'table')}{beside}, {joined(urgent)}."
    return f"None of the {counted(measured, 'table')}{beside} has a finding that needs work."


def _nothing_measured(tables: Sequence[TableReport]) -> str:
    """Why the report can say nothing."""
    reasons = list(dict.fromkeys(table.reason or table.verdict for table in tables))
    subject = f"the table {tables[0].table}" if len(tables) == 1 else f"any of {counted(len(tables), 'table')}"
    first = "" if len(reasons) == 1 else f"the first reason, of {tables[0].table}: "
    return f"Nothing could be measured of {subject}: {first}{reasons[0].rstrip('.')}."


def _lede(summary: Summary, tables: Sequence[TableReport], actions: Sequence[Action]) -> str:
    """The report in two or three sentences."""
    if not summary.tables:
        return "No table was measured in this run."
    if not summary.critical + summary.warning + summary.ok:
        return " ".join([_nothing_measured(tables), *_attempts(actions)])
    sentences = [_states_told(summary, tables)]
    if summary.failed:
        sentences.append(f"{counted(summary.failed, 'table')} could not be measured.")
    if summary.not_measured:
        sentences.append(
            f"{counted(summary.not_measured, 'table')} {'was' if summary.not_measured == 1 else 'were'} not diagnosed."
        )
    done = [action for action in actions if action.succeeded]
    if done:
        made = f"{counted(len(done), 'repair')} {'was' if len(done) == 1 else 'were'} made and checked"
        told = lookup_sentence(done[0].effect)
        sentences.append(f"{made}: {told} in {done[0].table}." if told and len(done) == 1 else f"{made}.")
    sentences += _attempts(actions)
    if summary.proposals:
        wait = "waits" if summary.proposals == 1 else "wait"
        sentences.append(f"{counted(summary.proposals, 'proposal')} {wait} for a decision.")
    if recommended := sum(not proposal.runnable for table in tables for proposal in table.proposals):
        is_left = f"{'is' if recommended == 1 else 'are'} left to you to run"
        sentences.append(f"{counted(recommended, 'recommendation')} {is_left}.")
    return " ".join(sentences)


def _is_dry_run(results: Sequence[TableResults]) -> bool:
    """Whether a maintenance run was asked to show its changes only."""
    return any(mapping(result.data("proposal").get("request")).get("dry_run") is True for result in results)


def _run_lede(tables: Sequence[TableReport], *, dry_run: bool) -> str:
    """What a single run did, or what it proposes."""
    told = [f"{action.title}: {action.summary}" for table in tables for action in table.actions]
    if not told:
        told = [f"{item.title}: {item.summary}" for table in tables for item in table.alternatives]
    if not told:
        told = [f"{proposal.title}: {proposal.summary}" for table in tables for proposal in table.proposals]
        told += [f"No proposal: {table.no_op_reason}" for table in tables if table.no_op_reason]
    failed = [f"{table.table} could not be measured: {table.reason}" for table in tables if table.state == "failed"]
    begin = ["Dry run: nothing was changed."] if dry_run else []
    return " ".join([*begin, *(sentence(text_.removesuffix(": ")) for text_ in [*told, *failed])])


def _attention(tables: Sequence[TableReport], actions: Sequence[Action]) -> list[Attention]:
    """Repairs that failed, then tables by urgency; one entry a table."""
    entries: dict[str, Attention] = {}
    known = {table.table: table for table in tables}
    for action in actions:
        table = known.get(action.table)
        newest = table.actions[0] if table and table.actions else action
        if action.state in _FAILED_ACTIONS and newest is action:
            entries[action.table] = _failed_action(action)
    for table in tables:
        if table.table not in entries and (entry := _table_attention(table)):
            entries[table.table] = entry
    return list(entries.values())


def _failed_action(action: Action) -> Attention:
    serious = action.state == "verification_failed"
    step = "Look at the run's log, then start the maintenance again."
    if action.kind == "rollback":
        step = "Read the reason: a rollback is refused once somebody else has changed the table."
    if serious:
        step = "Do not write to the table until the check's reason is understood"
        step += f"; to go back: {action.rollback}" if action.rollback else "."
    return Attention(
        table=action.table,
        anchor=action.anchor,
        level="critical" if serious else "warning",
        title="A repair changed the table, and its check failed" if serious else f"A {action.kind} did not succeed",
        evidence=action.summary,
        next_step=visible(step),
    )


def _table_attention(table: TableReport) -> Attention | None:
    if table.state == "failed":
        return Attention(
            table=table.table,
            anchor=table.anchor,
            level="failed",
            title="Could not be measured",
            evidence=table.reason or "",
            next_step=(
                "Repair the table's metadata, or exclude the table in the settings; until then nothing is known of it."
            ),
        )
    if table.failed_expectations:
        return Attention(
            table=table.table,
            anchor=table.anchor,
            level="warning" if table.state != "critical" else "critical",
            title="The measurement contradicts itself",
            evidence=", ".join(expectation.name for expectation in table.failed_expectations[:3]),
            next_step="Trust no number of this table until the contradiction is explained.",
        )
    urgent = [finding for finding in table.findings if finding.level in ("critical", "warning")]
    if table.state not in ("critical", "warning") or not urgent:
        return None
    worst = urgent[0]
    return Attention(
        table=table.table,
        anchor=table.anchor,
        level=table.state,
        title=worst.title,
        evidence=" ".join(
            sentence(part)
            for part in (
                worst.explanation or clipped(short_file_names(worst.evidence), _EVIDENCE),
                table.planning_told,
            )
            if part
        ),
        more=len(urgent) - 1,
        next_step=_next_step(worst, table.proposals),
    )


def _next_step(finding: Finding, proposals: Sequence[Proposal]) -> str:
    answer = answer_to(finding, proposals)
    predicted = f" Predicted: {answer.summary}" if answer and answer.summary else ""
    return sentence(finding.recommendation) + predicted
