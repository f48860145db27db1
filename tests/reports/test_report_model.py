from __future__ import annotations

import html
import json
from pathlib import Path
from typing import Any, Final

import pytest

from planning_health.reports import Report, build_report, render_html, render_mail, render_markdown
from planning_health.reports.decisions import Decisions
from planning_health.reports.effects import effect
from planning_health.reports.model import TableReport
from planning_health.settings.models import MaintenanceSettings
from planning_health.stages.report import report

from . import sample_run as sample

LIMITS: Final = {"tables": ["lake.sales.*"], "most_manifests": 100, "most_metadata_bytes": 1_000_000}


def table(model: Report, name: object) -> TableReport:
    return next(row for row in model.tables if row.table == str(name))


@pytest.fixture
def weekly(tmp_path: Path) -> Report:
    """This week's report, after last week's and a repair."""
    before = sample.last_week(tmp_path)
    report(sample.SETTINGS, before.folder)
    published_at(tmp_path, "2026-11-23T06:05:00+00:00")
    sample.repair(tmp_path)
    return build_report(sample.this_week(tmp_path).folder)


def published_at(home: Path, moment: str) -> None:
    """Backdates every published report."""
    for path in (home / "reports").glob("*/report.json"):
        path.write_text(json.dumps(json.loads(path.read_text()) | {"created_at": moment}))


def test_the_headline_counts_each_table_once(weekly: Report) -> None:
    summary = weekly.summary
    assert (summary.tables, summary.critical, summary.warning, summary.ok, summary.failed) == (7, 1, 1, 4, 1)
    assert (summary.proposals, summary.actions) == (1, 1)


def test_a_table_that_could_not_be_measured_is_listed_as_failed_with_its_reason(weekly: Report) -> None:
    broken = table(weekly, sample.BROKEN)
    assert broken.state == "failed"
    assert broken.reason == sample.BROKEN_REASON
    assert [item.table for item in weekly.attention if item.level == "failed"] == [str(sample.BROKEN)]


def test_attention_lists_the_most_urgent_table_first_with_the_next_step(weekly: Report) -> None:
    assert [item.level for item in weekly.attention] == ["critical", "failed", "warning"]
    assert weekly.attention[0].next_step == "Rewrite the manifests: that drops the entries of removed files."
    assert weekly.attention[0].evidence == "Removed files are read and thrown away by each planning."


def test_what_changed_tells_states_findings_and_numbers(weekly: Report) -> None:
    changes = weekly.changes
    assert [(state.table, state.before, state.after, state.direction) for state in changes.states] == [
        ("lake.sales.orders", "critical", "ok", "better")
    ]
    assert [finding.title for finding in changes.resolved_findings] == [sample.WIDE_FINDING["title"]]
    moved = {number.label: (number.before, number.after, number.direction) for number in changes.numbers}
    assert moved["Manifests"] == (42, 6, "better")
    assert str(sample.CUSTOMERS) in changes.new_tables


def test_an_action_is_shown_with_before_predicted_and_after(weekly: Report) -> None:
    rows = {row.key: (row.before, row.predicted, row.after) for row in weekly.actions[0].effect}
    assert rows["manifests"] == (42, 6, 6)
    assert rows["metadata_bytes"] == (394_800, 352_000, 366_000)
    assert rows["overlap.0.ordered_on_day"] == (28.9, 1.0, 1.0)
    assert rows["query.one_day"] == (31, 1, 1)
    assert rows["query_bytes.one_day"] == (291_400, 58_000, 60_000)


def test_each_prediction_is_held_against_what_came_true(weekly: Report) -> None:
    off = {row.key: row.off for row in weekly.actions[0].effect}
    assert off["manifests"] == off["query.one_day"] == 0
    assert off["metadata_bytes"] == pytest.approx(14_000 / 366_000)
    assert off["query_bytes.one_day"] == pytest.approx(2_000 / 60_000)


def test_a_prediction_that_came_true_is_shown_although_nothing_moved() -> None:
    query = {"name": "all", "manifests": 1, "metadata_bytes": 9_000}
    state = {"manifests": 1, "metadata_bytes": 9_000, "queries": [query]}
    shown = effect(state, {"manifests_after": 1, "metadata_bytes_after": 9_000, "queries": [query]}, state)
    assert [(row.key, row.off) for row in shown] == [
        ("manifests", 0),
        ("metadata_bytes", 0),
        ("query.all", 0),
        ("query_bytes.all", 0),
    ]
    assert [row.key for row in effect(state, {}, {})] == ["manifests"]


def test_the_repaired_table_has_pictures_before_and_after(weekly: Report) -> None:
    (field,) = table(weekly, sample.ORDERS).figures.fields
    assert field.ranges is not None
    assert [(panel.manifests, panel.crossed) for panel in field.ranges.panels] == [(42, 42), (6, 1)]
    assert "42 of 42 manifests before, 1 of 6 after the repair" in field.ranges.caption
    assert field.depth is not None
    assert [panel.worst for panel in field.depth.panels] == [42, 1]


def test_a_table_that_was_not_due_is_shown_as_it_was_measured_last(tmp_path: Path) -> None:
    report(sample.SETTINGS, sample.last_week(tmp_path).folder)
    sample.repair(tmp_path)
    run = sample.Sample(tmp_path, sample.WEEKLY, sample.THIS_WEEK, "2026-11-30T06:02:00+00:00")
    run.put("discovery", data={"tables": [str(sample.TOTALS)], "not_due": {str(sample.ORDERS): "2026-11-23"}})
    run.put("measure", data={"tables": [str(sample.TOTALS)], "failed": {}})
    run.measured(sample.TOTALS, 8, 6, 1512)
    run.put("health", sample.TOTALS, data=sample.clustered_orders())
    model = build_report(run.folder)
    orders = table(model, sample.ORDERS)
    assert (orders.state, orders.due, orders.measured_at) == ("critical", False, "2026-11-23T06:02:00+00:00")
    assert [action.title for action in orders.actions] == ["Manifests rewritten"]
    assert model.changes.gone_tables == []
    assert model.summary.tables == 2
    assert "(not due in this run)" in render_html(model)


def test_a_dry_run_is_no_action(tmp_path: Path) -> None:
    sample.repair(tmp_path, dry_run=True)
    assert build_report(sample.this_week(tmp_path).folder).actions == []


def test_a_rollback_is_listed_and_takes_back_the_count_of_its_repair(tmp_path: Path) -> None:
    sample.rollback(sample.repair(tmp_path))
    model = build_report(sample.this_week(tmp_path).folder)
    assert [(action.kind, action.state, action.succeeded) for action in model.actions] == [
        ("rollback", "rolled_back", False),
        ("repair", "rolled_back", False),
    ]
    assert model.actions[0].summary == "the table is back at snapshot 41 and 1 property set back"
    assert model.actions[1].summary.startswith("undone 27 Nov 2026 08:00; it had made 42 → 6 manifests")
    assert model.summary.actions == 0
    assert "made and checked" not in model.lede
    assert "A rollback undid 1 repair." in model.lede
    assert not any(item.table == str(sample.ORDERS) for item in model.improvements)


def test_a_rollback_that_failed_is_told_and_its_repair_stands(tmp_path: Path) -> None:
    sample.rollback(sample.repair(tmp_path), status="failed", reason="snapshot 43 was committed after the run's")
    model = build_report(sample.this_week(tmp_path).folder)
    assert model.summary.actions == 1
    assert "1 rollback did not succeed." in model.lede
    (item,) = [item for item in model.attention if item.table == str(sample.ORDERS)]
    assert (item.title, item.level) == ("A rollback did not succeed", "warning")


def test_a_rollback_that_found_nothing_is_no_action(tmp_path: Path) -> None:
    sample.rollback(sample.repair(tmp_path), status="skipped", reason="the run left nothing to undo")
    assert [action.kind for action in build_report(sample.this_week(tmp_path).folder).actions] == ["repair"]


def test_the_report_of_a_dry_run_says_so(tmp_path: Path) -> None:
    model = build_report(sample.dry_run(tmp_path).folder)
    assert model.title == "Maintenance (dry run): lake.sales.orders"
    assert model.lede.startswith("Dry run: nothing was changed. Rewrite the manifests of spec 0")


def test_a_recommendation_does_not_wait_for_a_decision(tmp_path: Path) -> None:
    run = sample.this_week(tmp_path)
    data = sample.proposal(sample.CUSTOMERS)
    data["proposals"].append(data["proposals"][0] | {"action": "recommend_expire_snapshots", "params": {}})
    run.put("proposal", sample.CUSTOMERS, data=data)
    model = build_report(run.folder)
    assert [proposal.runnable for proposal in table(model, sample.CUSTOMERS).proposals] == [True, False]
    assert model.lede.endswith("1 recommendation is left to you to run.")
    assert model.summary.proposals == 1


@pytest.mark.parametrize(("acted_at", "told"), [("2026-11-22T09:32:00+00:00", 0), ("2026-11-26T09:32:00+00:00", 1)])
def test_actions_are_told_of_at_least_a_week_and_no_longer_once_they_were_reported(
    tmp_path: Path, acted_at: str, told: int
) -> None:
    run = sample.Sample(tmp_path, "table_maintenance", sample.REPAIR, acted_at)
    run.put("action", sample.ORDERS, snapshot_id=42, data=sample.action(started_at=acted_at))
    report(sample.SETTINGS, sample.last_week(tmp_path).folder)
    published_at(tmp_path, "2026-11-29T06:05:00+00:00")
    assert len(build_report(sample.this_week(tmp_path).folder).actions) == told


def test_a_failed_verification_comes_before_everything_else(tmp_path: Path) -> None:
    sample.repair(tmp_path, state="verification_failed")
    model = build_report(sample.this_week(tmp_path).folder)
    assert model.attention[0].table == str(sample.ORDERS)
    assert model.attention[0].level == "critical"
    assert "rollback_to_snapshot" in model.attention[0].next_step
    assert not any(item.table == str(sample.ORDERS) for item in model.improvements)


def test_a_missing_result_is_not_measured_and_never_zero(tmp_path: Path) -> None:
    run = sample.Sample(tmp_path, sample.WEEKLY, sample.THIS_WEEK, "2026-11-30T06:02:00+00:00")
    run.measured(sample.ORDERS, 42, 6, 1512)
    model = build_report(run.folder)
    orders = table(model, sample.ORDERS)
    assert orders.state == "not_measured"
    assert model.summary.not_measured == 1
    assert orders.number("overlap_mean").value is None  # type: ignore[union-attr]
    assert orders.number("metadata_bytes").value is None  # type: ignore[union-attr]
    assert "diagnosis" in orders.missing


def test_a_damaged_result_file_costs_only_what_it_held(tmp_path: Path) -> None:
    run = sample.this_week(tmp_path)
    (tmp_path / run.folder.result_path("health", sample.ORDERS)).write_text("{ not json")
    model = build_report(run.folder)
    assert table(model, sample.ORDERS).state == "not_measured"
    assert table(model, sample.CUSTOMERS).state == "critical"


def test_a_run_without_any_result_still_gives_a_report(tmp_path: Path) -> None:
    model = build_report(sample.Sample(tmp_path, "cli", "empty", "2026-11-30T06:02:00+00:00").folder)
    assert model.summary.tables == 0
    assert model.lede == "No table was measured in this run."


@pytest.mark.parametrize(
    ("reasons", "told"),
    [
        (["m1 is missing"], "Nothing could be measured of the table lake.t.t0: m1 is missing."),
        (["x", "x"], "Nothing could be measured of any of 2 tables: x."),
        (["x.", "y"], "Nothing could be measured of any of 2 tables: the first reason, of lake.t.t0: x."),
    ],
)
def test_a_report_that_knows_nothing_says_so_and_why(tmp_path: Path, reasons: list[str], told: str) -> None:
    run = sample.Sample(tmp_path, "cli", "r", "2026-11-30T06:02:00+00:00")
    for number, reason in enumerate(reasons):
        run.put("measurement", sample.TableName("lake", ("t",), f"t{number}"), status="failed", reason=reason)
    model = build_report(run.folder)
    assert model.lede == told
    assert "No table that was measured has a finding" not in render_html(model)


def test_the_headline_speaks_of_the_tables_that_were_measured(tmp_path: Path) -> None:
    run = sample.Sample(tmp_path, "cli", "r", "2026-11-30T06:02:00+00:00")
    run.put("measurement", sample.BROKEN, status="failed", reason="x")
    run.measured(sample.ORDERS, 1, 6, 1512)
    run.put("health", sample.ORDERS, data=sample.clustered_orders())
    assert build_report(run.folder).lede == (
        "lake.sales.orders, the only table that could be measured, has no finding that needs work. 1 table could not "
        "be measured."
    )


def test_the_headline_on_one_table_says_how_it_is(tmp_path: Path) -> None:
    run = sample.Sample(tmp_path, "cli", "r", "2026-11-30T06:02:00+00:00")
    run.measured(sample.ORDERS, 1, 6, 1512)
    run.put("health", sample.ORDERS, data=sample.wide_orders())
    assert build_report(run.folder).lede == "lake.sales.orders is critical."


def test_a_query_that_fits_no_table_and_a_step_that_failed_are_told_first(tmp_path: Path) -> None:
    run = sample.this_week(tmp_path)
    typo = {"name": "typo", "where": "oder_id = 1", "reason": "unknown column 'oder_id'"}
    of_another = {"name": "one_day", "where": "ordered_on = DATE'2026-09-20'", "reason": "unknown column"}
    planned = sample.planning(("one_day", "ordered_on = DATE'2026-09-20'", 1, 6))
    run.put("planning", sample.ORDERS, data=planned | {"not_planned": [typo]})
    run.put("planning", sample.TOTALS, data={"predicates": [], "not_planned": [typo, of_another]})
    run.put("proposal", sample.CUSTOMERS, status="failed", reason="property 'x' is odd")
    model = build_report(run.folder)
    assert model.warnings == [
        "The settings' query typo (oder_id = 1) fits no table, so nothing is told of it: lake.sales.daily_totals and 1 "
        "more table: not planned: unknown column 'oder_id'",
        "lake.sales.customers: proposals: property 'x' is odd",
    ]
    for shown in (render_html(model), render_mail(model), render_markdown(model)):
        assert shown.index("To know before reading on") < shown.index("What needs attention first")
        assert "unknown column" in shown


def test_what_to_do_about_a_finding_is_the_proposal_that_answers_it(tmp_path: Path) -> None:
    run = sample.this_week(tmp_path)
    data = sample.proposal(sample.CUSTOMERS)
    data["proposals"][0]["answers"] = ["high_deleted_ratio"]
    run.put("proposal", sample.CUSTOMERS, data=data)
    (item,) = [item for item in build_report(run.folder).attention if item.table == str(sample.CUSTOMERS)]
    assert item.next_step.startswith("Rewrite the manifests of spec 0, as proposed. Predicted: 42 → 6 manifests")


def test_heavy_statistics_without_a_known_query_name_the_command_that_advises(tmp_path: Path) -> None:
    run = sample.this_week(tmp_path)
    heavy = sample.WIDE_FINDING | {"id": "heavy_statistics", "recommendation": "Keep the statistics of columns."}
    rows = [sample.manifest(0, sample.FIRST_DAY, sample.FIRST_DAY + 9)]
    run.put("health", sample.TOTALS, data=sample.health_of(rows, state="critical", findings=[heavy]))
    (finding,) = table(build_report(run.folder, Decisions(settings_file="/s.yaml")), sample.TOTALS).findings
    assert finding.recommendation.startswith("Keep the statistics of columns. Which columns these are, ")
    assert "planning-health advise-metrics lake.sales.daily_totals --settings /s.yaml" in finding.recommendation


def test_every_rendering_lists_the_same_next_steps_with_what_to_run(tmp_path: Path) -> None:
    run = sample.this_week(tmp_path)
    data = sample.proposal(sample.CUSTOMERS)
    advice = {"action": "recommend_x", "title": "Compact small data files", "params": {}, "commands": ["CALL x.y()"]}
    data["proposals"].append(data["proposals"][0] | advice)
    run.put("proposal", sample.CUSTOMERS, data=data)
    model = build_report(run.folder, Decisions(settings_file="/etc/ph/my settings.yaml"))
    command = "planning-health maintain lake.sales.customers --spec-id 0 --settings '/etc/ph/my settings.yaml'"
    for shown in map(html.unescape, (render_html(model), render_mail(model), render_markdown(model))):
        steps = shown.split("What to do next")[1].split("State of each table")[0]
        titles = ("Rewrite the manifests of spec 0.", command, "Compact small data files.", "CALL x.y()")
        places = [steps.index(text) for text in titles]
        assert places == sorted(places)
        assert "--apply at its end" in steps


@pytest.mark.parametrize(
    ("maintenance", "told"),
    [
        ({"approval": "off"}, "Nobody is asked for approval: the settings have switched it off (maintenance.approval)"),
        ({"auto_approve": LIMITS}, "Approved in advance by maintenance.auto_approve"),
        ({"auto_approve": LIMITS | {"most_manifests": 41}}, "A person is asked for approval: manifests before: 42, "),
        ({}, ""),
    ],
)
def test_a_proposal_says_whether_a_person_is_asked(tmp_path: Path, maintenance: dict[str, Any], told: str) -> None:
    run = sample.this_week(tmp_path)
    headline = {"manifests_before": 42, "metadata_bytes_before": 394_800}
    run.put("proposal", sample.CUSTOMERS, headline=headline, data=sample.proposal(sample.CUSTOMERS))
    model = build_report(run.folder, Decisions(maintenance=MaintenanceSettings.model_validate(maintenance)))
    (proposal,) = table(model, sample.CUSTOMERS).proposals
    assert proposal.approval.startswith(told)
    assert bool(proposal.approval) == bool(told)
    assert proposal.approval in html.unescape(render_html(model))


def test_a_measurement_that_contradicts_itself_needs_attention(tmp_path: Path) -> None:
    run = sample.this_week(tmp_path)
    failed = {"name": "every manifest is present once", "success": False, "observed": 5, "expected": 6}
    run.put("validation", sample.UPLOADS, data={"success": False, "blocking": True, "expectations": [failed]})
    model = build_report(run.folder)
    (item,) = [item for item in model.attention if item.table == str(sample.UPLOADS)]
    assert item.title == "The measurement contradicts itself"


def test_a_large_table_stays_within_the_caps(tmp_path: Path) -> None:
    run = sample.Sample(tmp_path, sample.WEEKLY, sample.THIS_WEEK, "2026-11-30T06:02:00+00:00")
    rows = [sample.manifest(n, sample.FIRST_DAY + n, sample.FIRST_DAY + n + 60) for n in range(1_000)]
    run.measured(sample.ORDERS, 1, 1_000, 36_000)
    run.put("health", sample.ORDERS, data=sample.health_of(rows, state="critical", findings=[]))
    (field,) = table(build_report(run.folder), sample.ORDERS).figures.fields
    assert field.ranges is not None
    assert field.depth is not None
    assert field.ranges.panels[0].manifests == 1_000
    assert len(field.ranges.panels[0].spans) == 120
    assert len(field.depth.panels[0].bars) <= 96
    assert max(bar.depth for bar in field.depth.panels[0].bars) == 61


def test_manifests_without_a_live_entry_are_marked_and_do_not_count_as_the_highest_ratio(tmp_path: Path) -> None:
    rows = [
        sample.manifest(0, sample.FIRST_DAY, sample.FIRST_DAY + 9, deleted_ratio=1.0, live_entries=0),
        sample.manifest(1, sample.FIRST_DAY, sample.FIRST_DAY + 9, deleted_ratio=0.5),
    ]
    health = sample.health_of(rows, state="warning", findings=[])
    health["lists"]["by_deleted_ratio"] = [{"path": row["path"], "deleted_ratio": row["deleted_ratio"]} for row in rows]
    run = sample.Sample(tmp_path, sample.WEEKLY, sample.THIS_WEEK, "2026-11-30T06:02:00+00:00")
    run.measured(sample.ORDERS, 1, 2, 4)
    run.put("health", sample.ORDERS, data=health)
    orders = table(build_report(run.folder), sample.ORDERS)
    assert [row.live for row in orders.worst_deleted] == [False, True]
    assert orders.number("deleted_ratio").value == 0.5  # type: ignore[union-attr]


def test_the_picture_of_the_manifests_says_that_delete_manifests_are_not_drawn(tmp_path: Path) -> None:
    rows = [sample.manifest(n, sample.FIRST_DAY, sample.FIRST_DAY + 9, content=int(n == 2)) for n in range(3)]
    run = sample.Sample(tmp_path, sample.WEEKLY, sample.THIS_WEEK, "2026-11-30T06:02:00+00:00")
    run.measured(sample.ORDERS, 1, 3, 4)
    run.put("health", sample.ORDERS, data=sample.health_of(rows, state="warning", findings=[]))
    (field,) = table(build_report(run.folder), sample.ORDERS).figures.fields
    assert field.ranges is not None
    assert field.ranges.panels[0].manifests == 2
    assert field.ranges.caption.endswith(
        "Delete manifests, which planning opens beside them, are not drawn: there are 1."
    )


def test_values_without_numbers_are_placed_in_their_order(tmp_path: Path) -> None:
    def country(ordinal: int, lower: str, upper: str) -> dict[str, object]:
        bounds = {"field": "country", "transform": "identity", "lower_display": lower, "upper_display": upper}
        return sample.manifest(ordinal, 0, 0, ranges=[bounds | {"lower": None, "upper": None}])

    health = {
        "state": "warning",
        "manifests": [country(0, "DE", "IT"), country(1, "FR", "SE")],
        "overlap": [
            {
                "spec_id": 0,
                "field": "country",
                "mean": 1.5,
                "worst": 2,
                "series": [
                    {"value": None, "display": name, "depth": depth}
                    for name, depth in (("DE", 1), ("FR", 2), ("IT", 2), ("SE", 1))
                ],
            }
        ],
    }
    run = sample.Sample(tmp_path, sample.WEEKLY, sample.THIS_WEEK, "2026-11-30T06:02:00+00:00")
    run.measured(sample.ORDERS, 1, 2, 4)
    run.put("health", sample.ORDERS, data=health)
    (field,) = table(build_report(run.folder), sample.ORDERS).figures.fields
    assert field.ranges is not None
    assert field.ranges.lookup in ("FR", "IT")
    assert [(span.start, span.end) for span in field.ranges.panels[0].spans] == [(0.0, 0.75), (0.25, 1.0)]


def test_the_model_survives_json(weekly: Report) -> None:
    assert Report.model_validate_json(weekly.model_dump_json()) == weekly


def test_a_query_that_does_not_fit_the_table_is_named_with_its_reason(tmp_path: Path) -> None:
    run = sample.this_week(tmp_path)
    left_out = {"name": "one_site", "where": "site = 'c'", "reason": "unknown column 'site'"}
    planned = sample.planning(("one_day", "ordered_on = DATE'2026-09-20'", 1, 6))
    run.put("planning", sample.ORDERS, data=planned | {"not_planned": [left_out]})
    shown = table(build_report(run.folder), sample.ORDERS)
    query = shown.queries[-1]
    assert (query.name, query.where, query.manifests_opened) == ("one_site", "site = 'c'", None)
    assert query.note == "not planned: unknown column 'site'"
    assert shown.state == "ok"


@pytest.mark.parametrize(
    ("times", "told"),
    [
        ({"predicted_ms": 3.21}, "Predicted, not measured: the slowest of its queries plans in 3 ms."),
        ({"predicted_ms": 30_100.0}, "Predicted, not measured: the slowest of its queries plans in 30.1 s."),
        (
            {"predicted_ms": 3.21, "measured": {"median_ms": 12.4}},
            "Iceberg planned the slowest of its queries in 12 ms.",
        ),
    ],
)
def test_a_bad_table_says_whether_it_plans_in_milliseconds_or_in_minutes(
    tmp_path: Path, times: dict[str, object], told: str
) -> None:
    run = sample.this_week(tmp_path)
    query = {"name": "one_day", "where": "d = 1", "weight": 1, **times}
    run.put("planning", sample.CUSTOMERS, data={"predicates": [query], "not_planned": []})
    model = build_report(run.folder)
    assert table(model, sample.CUSTOMERS).planning_told == told
    assert told in next(item for item in model.attention if item.table == str(sample.CUSTOMERS)).evidence
    assert told in render_html(model)
    assert told in render_markdown(model)
    assert ("predicted: 3 ms</td>" in render_html(model)) == (times == {"predicted_ms": 3.21})
