"""Other Dags follow ours by assets, and ask for a measurement after their own load; numbers reach Airflow's metrics."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.dag_processing.dagbag import DagBag
from airflow.sdk.observability import stats

import planning_run
from planning_assets import REQUEST
from planning_health.envelope import Envelope

pytestmark = pytest.mark.airflow

REPOSITORY = Path(__file__).parents[2]


class Recorder:
    """A backend of Airflow's metrics that keeps what it is given."""

    def __init__(self) -> None:
        self.gauges: dict[tuple[str, str | None], float] = {}

    def gauge(self, stat: str, value: float, *, tags: dict[str, str] | None = None, **_: Any) -> None:
        """Keeps a gauge by its name and table."""
        self.gauges[stat, (tags or {}).get("table")] = value


def event(**extra: Any) -> SimpleNamespace:
    return SimpleNamespace(extra=extra)


@pytest.mark.parametrize(
    ("events", "run_type", "expected"),
    [
        ([], "scheduled", {"only_due": True, "requested": None}),
        ([], "manual", {"only_due": False, "requested": None}),
        (
            [event(tables=["lake.a.b"]), event(tables=["lake.a.c", "lake.a.b"])],
            "asset_triggered",
            ["lake.a.b", "lake.a.c"],
        ),
        ([event(tables=["lake.a.b"]), event()], "asset_triggered", None),
    ],
)
def test_a_run_measures_what_is_due_or_what_the_events_name(
    monkeypatch: pytest.MonkeyPatch, events: list[SimpleNamespace], run_type: str, expected: Any
) -> None:
    asked: dict[str, Any] = {}
    context = {"dag_run": SimpleNamespace(run_type=run_type), "triggering_asset_events": {REQUEST: events}}
    monkeypatch.setattr(planning_run, "get_current_context", lambda: context)
    monkeypatch.setattr(planning_run, "step", lambda name, **options: asked.update(options))
    planning_run.discover_tables()
    assert asked == (expected if isinstance(expected, dict) else {"only_due": False, "requested": expected})


def test_the_weekly_dag_follows_the_asset_that_the_example_dag_produces() -> None:
    weekly = DagBag(str(REPOSITORY / "dags")).dags["planning_health_weekly"]
    followed = {asset.uri for asset in weekly.timetable.asset_condition.objects}
    example = DagBag(str(REPOSITORY / "docs" / "examples" / "measure_after_load.py"))
    assert example.import_errors == {}
    (outlet,) = example.dags["load_orders"].get_task("load").outlets
    assert {outlet.uri} == followed == {REQUEST.uri}
    assert outlet == REQUEST  # two definitions of one asset would overwrite each other at each parsing
    (metadata,) = example.dags["load_orders"].get_task("load").python_callable()
    assert metadata.extra == {"tables": ["lake.sales.orders"]}


def test_without_a_schedule_only_requests_start_the_weekly_dag(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLANNING_HEALTH__OPERATIONS", '{"schedule": null}')
    bag = DagBag(str(REPOSITORY / "dags"))
    assert bag.import_errors == {}
    assert type(bag.dags["planning_health_weekly"].timetable).__name__ == "AssetTriggeredTimetable"


def test_numbers_are_attached_to_asset_events_and_handed_to_airflows_metrics(monkeypatch: pytest.MonkeyPatch) -> None:
    recorder = Recorder()
    monkeypatch.setattr(sys.modules[stats.gauge.__module__], "_backend", recorder)
    events = {REQUEST: SimpleNamespace(extra=None)}
    context: Any = {
        "dag_run": SimpleNamespace(dag_id="planning_health_weekly"),
        "task": SimpleNamespace(outlets=[REQUEST]),
        "outlet_events": events,
    }
    envelope = Envelope(
        kind="health",
        run_id="r",
        table="lake.a.b",
        status="ok",
        headline={"manifests": 42, "delete_files": None},
        path="p",
    )
    planning_run.announce(context, envelope.model_dump())
    assert recorder.gauges == {("planning_health.health.manifests", "lake.a.b"): 42}
    assert events[REQUEST].extra == {
        "run_id": "r",
        "table": "lake.a.b",
        "headline": {"manifests": 42, "delete_files": None},
        "path": "p",
    }
