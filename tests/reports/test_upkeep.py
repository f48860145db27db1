"""How fast a repaired table grows back, and how often it is to be repaired therefore."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from tests.maintenance.pictures import picture

from planning_health.maintenance.keeping import Keeping
from planning_health.metadata import save
from planning_health.metadata.model import files_schema
from planning_health.metadata.store import delete_files_recorded
from planning_health.reports import build_report, render_html, render_mail, render_markdown
from planning_health.reports.decisions import Decisions
from planning_health.reports.model import Action, Comparison, KeyNumber, Proposal, TableReport
from planning_health.reports.upkeep import Moment, advice, upkeep
from planning_health.stages.report import report

from . import sample_run as sample

REPAIRED = datetime(2026, 11, 1, tzinfo=UTC)


def repair(before: float = 21.0, after: float = 1.0) -> Action:
    return Action(
        table="lake.a.b",
        anchor="x",
        run_id="r",
        dag_id="table_maintenance",
        started_at=REPAIRED.isoformat(),
        at=REPAIRED.isoformat(),
        state="done",
        title="Manifests rewritten",
        succeeded=True,
        effect=[
            Comparison(key="metadata_bytes", label="Metadata size", unit="bytes", before=500_000, after=100_000),
            Comparison(key="overlap.0.day", label="opened", before=before, after=after),
            Comparison(key="overlap.1.bucket", label="opened", before=2, after=2),
        ],
    )


def table(days: float, depth: float | None, size: int | None) -> TableReport:
    numbers = [
        KeyNumber(key="overlap_mean", label="d", value=depth),
        KeyNumber(key="metadata_bytes", label="m", value=size),
    ]
    measured = (REPAIRED + timedelta(days=days)).isoformat()
    return TableReport(table="lake.a.b", anchor="x", state="ok", measured_at=measured, numbers=numbers)


def moment(days: float, depth: float | None, size: int | None) -> Moment:
    return Moment(REPAIRED + timedelta(days=days), {"overlap_mean": depth, "metadata_bytes": size})


def test_the_number_that_is_halfway_back_first_sets_the_cadence() -> None:
    found = upkeep(table(10, 2.0, 200_000), repair(), [moment(5, 1.5, 150_000)])
    assert found is not None
    growth = {item.key: (round(item.per_day, 6), round(item.half_lost_days or 0, 6)) for item in found.growth}
    assert growth == {"overlap_mean": (0.1, 100), "metadata_bytes": (10_000, 20)}
    assert (found.cadence_days, found.measurements) == (20, 2)
    assert found.text == (
        "In 10 days since the repair: manifests opened per value, mean 1 → 2 and metadata size 100 KB → 200 KB. At "
        "this pace half of what the repair gained is lost by 21 Nov 2026: repair it every 20 days."
    )


def test_what_makes_a_repair_last_is_advised_with_its_command_or_the_proposal_that_sets_it() -> None:
    grown = table(10, 2.0, 200_000)
    alone = upkeep(grown, repair(), [], "/etc/s.yaml")
    assert alone is not None
    assert alone.advice == (
        "How commits merge manifests decides how long a repair lasts (commit.manifest.target-size-bytes, "
        "commit.manifest-merge.enabled): planning-health advise-layout lake.a.b --settings /etc/s.yaml predicts the "
        "effect of each choice."
    )
    layout = Proposal(id="advised_layout", action="rewrite_manifests", title="Lay out", summary="9 → 2 manifests")
    advised = upkeep(grown.model_copy(update={"proposals": [layout]}), repair(), [])
    assert advised is not None
    assert advised.advice.endswith("the proposal “Lay out” sets what is advised, predicted: 9 → 2 manifests.")
    left = advice(grown, None, Keeping((9, 9), (12_300, 12_300), 65_536, 65_536))
    assert left.startswith("The next append is predicted to merge none of today's manifests")
    harmless = advice(grown, None, Keeping((9, 5), (12_300, 12_400), 65_536, 16_384))
    assert harmless == "The next append is predicted to merge 9 manifests into 5, which costs planning nothing."
    undone = Keeping((9, 1), (12_300, 115_000), 8_388_608, 16_384)
    assert advice(grown, None, undone) == (
        "The next append is predicted to merge 9 manifests into 1: planning a query then reads 115 KB of metadata "
        "instead of 12.3 KB on average. commit.manifest.target-size-bytes = 16384 instead of 8388608 is predicted to "
        "leave them as they are (planning-health maintain lake.a.b --no-rewrite --target-manifest-bytes 16384 "
        "--apply); so is commit.manifest-merge.enabled = false, with which each append adds a manifest."
    )
    without = advice(grown, None, replace(undone, keeping_bytes=None))
    assert "with commit.manifest-merge.enabled = false they are predicted to stay as they are" in without
    kept = upkeep(table(30, 1.0, 90_000), repair(), [])
    assert kept is not None
    assert kept.advice == ""


def test_growth_is_the_best_line_through_the_state_after_the_repair() -> None:
    found = upkeep(table(4, 3.0, None), repair(), [moment(2, 3.0, None), moment(-3, 21.0, None)])
    assert found is not None
    (growth,) = found.growth
    assert growth.per_day == pytest.approx((2 * 2 + 4 * 2) / (4 + 16))


def test_a_gain_that_an_append_undid_at_once_is_said_so() -> None:
    found = upkeep(table(2, 20.0, 110_000), repair(), [])
    assert found is not None
    assert found.cadence_days == 1
    assert "Half of what the repair gained was lost by 2 Nov 2026, in 1 day: change how commits merge" in found.text


def test_what_was_lost_in_between_and_is_there_again_is_not_lost() -> None:
    found = upkeep(table(30, 1.0, 101_000), repair(), [moment(9, 7.0, 300_000)])
    assert found is not None
    assert (found.cadence_days, found.text) == (None, "Nothing of what the repair gained is lost after 30 days.")


def test_a_table_that_keeps_its_gain_needs_no_cadence() -> None:
    found = upkeep(table(30, 1.0, 90_000), repair(), [])
    assert found is not None
    assert (found.cadence_days, found.text) == (None, "Nothing of what the repair gained is lost after 30 days.")


@pytest.mark.parametrize(
    ("days", "action"), [(0.5, repair()), (9, None), (9, repair(before=1.0).model_copy(update={"effect": []}))]
)
def test_nothing_is_told_too_early_or_without_a_repair(days: float, action: Action | None) -> None:
    assert upkeep(table(days, 2.0, 200_000), action, []) is None


def test_the_report_tells_it_from_what_earlier_runs_left(tmp_path: Path) -> None:
    sample.repair(tmp_path)
    between = sample.Sample(tmp_path, sample.WEEKLY, "scheduled__28", "2026-11-28T06:02:00+00:00")
    between.measured(sample.ORDERS, 42, 6, 1512)
    between.put("health", sample.ORDERS, data=sample.clustered_orders())
    report(sample.SETTINGS, between.folder)
    run = sample.Sample(tmp_path, sample.WEEKLY, sample.THIS_WEEK, "2026-12-06T06:02:00+00:00")
    run.measured(sample.ORDERS, 43, 42, 1512)
    run.put("health", sample.ORDERS, data=sample.wide_orders())
    model = build_report(run.folder)
    (orders,) = model.tables
    assert orders.upkeep is not None
    assert orders.upkeep.measurements == 2
    assert orders.upkeep.advice.startswith("How commits merge manifests decides")
    assert "half of what the repair gained" in orders.upkeep.text.lower()
    assert orders.upkeep.lost
    assert model.improvements == []
    for shown in (render_html(model), render_mail(model), render_markdown(model)):
        overview = shown.split("Keeping it repaired")[1].split("State of each table")[0]
        assert "alf of what the repair gained" in overview
        assert "planning-health advise-layout lake.sales.orders" in overview


def test_the_effect_of_the_next_append_is_predicted_from_what_the_run_recorded(tmp_path: Path) -> None:
    sample.repair(tmp_path)
    run = sample.Sample(tmp_path, sample.WEEKLY, sample.THIS_WEEK, "2026-12-06T06:02:00+00:00")
    run.measured(sample.ORDERS, 43, 42, 1512)
    run.put("health", sample.ORDERS, data=sample.wide_orders())
    run.put("planning", sample.ORDERS, data=sample.planning(("one_day", "d = DATE'1970-01-04'", 1, 6)))
    properties = {"commit.manifest.target-size-bytes": "100000"}
    recorded = picture([[[day]] for day in range(12)], properties=properties)
    deletes = files_schema(delete_files_recorded(frozenset({2, 3}))).empty_table()
    save(replace(recorded, delete_files=deletes), run.folder.metadata_url(sample.ORDERS))
    (orders,) = build_report(run.folder, Decisions(settings_file="/s.yaml")).tables
    assert orders.upkeep is not None
    assert orders.upkeep.advice.startswith(
        "The next append is predicted to merge 12 manifests into 1: planning a query"
    )
    assert "planning-health maintain lake.sales.orders --no-rewrite --target-manifest-bytes " in orders.upkeep.advice


def test_a_repair_that_was_rolled_back_is_no_repair(tmp_path: Path) -> None:
    sample.rollback(sample.repair(tmp_path))
    model = build_report(sample.this_week(tmp_path).folder)
    assert all(row.upkeep is None for row in model.tables)
