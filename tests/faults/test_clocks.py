"""Clocks that are wrong, and time zones that are odd."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from tests.faults.conftest import Conclude, Make, Outcome
from tests.faults.lake import Table
from tests.reports import sample_run

from planning_health.maintenance.lease import lease_url
from planning_health.stages.measure import measure
from planning_health.stages.propose import propose
from planning_health.stages.prune import prune

pytestmark = pytest.mark.spark

ZONES = {
    "fourteen_hours_ahead": "Pacific/Kiritimati",
    "eleven_hours_behind": "Pacific/Niue",
    "half_hours_and_dst": "Australia/Lord_Howe",
    "unknown": "Mars/Olympus_Mons",
}


@pytest.fixture
def zone(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setenv("TZ", ZONES[request.param])
    time.tzset()
    yield request.param
    monkeypatch.undo()
    time.tzset()


def leave_lease(table: Table, heartbeat: str) -> Path:
    """A lease that a run on another host has left."""
    path = Path(lease_url(table.settings.home, table.name))
    path.parent.mkdir(exist_ok=True)
    holder = {"run_id": "other", "host": "elsewhere", "pid": 1, "spark_application_id": None, "token": "t"}
    path.write_text(json.dumps(holder | {"heartbeat": heartbeat}))
    return path


@pytest.mark.parametrize("zone", ZONES, indirect=True)
@pytest.mark.parametrize("action", ["rewrite_manifests", "trim_statistics"])
def test_the_time_zone_is_odd(zone: str, action: str, make: Make, conclude: Conclude) -> None:
    table = make(action)
    measure(table.settings, table.run, [table.name], spark=table.spark)
    assert propose(table.settings, table.run, table.name, table.request).status == "ok"
    says = table.act()
    assert says["state"] == "done", says["reason"]
    table.check_rows()
    table.check_truth(says, {})
    started = datetime.fromisoformat(says["steps"][0]["started_at"])
    assert abs(datetime.now(UTC) - started) < timedelta(minutes=5), zone
    conclude(table, says["state"])


@pytest.mark.parametrize("ahead", [timedelta(minutes=5), timedelta(hours=1), timedelta(days=400)], ids=str)
def test_a_living_holders_clock_is_ahead(ahead: timedelta, make: Make, conclude: Conclude) -> None:
    table = make("rewrite_manifests")
    before = table.iceberg()
    path = leave_lease(table, (datetime.now(UTC) + ahead).isoformat())
    says = table.act()
    assert says["state"] == "refused"
    assert "run 'other' on elsewhere" in says["reason"]
    table.check_rows()
    table.check_truth(says, dict(before.properties))
    path.unlink()
    conclude(table, says["state"])


@pytest.mark.parametrize("ahead", [timedelta(hours=1), timedelta(days=400)], ids=str)
def test_a_dead_holders_clock_was_ahead(ahead: timedelta, make: Make, conclude: Conclude) -> None:
    """Its lease does not hold for as long as its clock was wrong: the store's own clock says when it was renewed."""
    table = make("rewrite_manifests")
    path = leave_lease(table, (datetime.now(UTC) + ahead).isoformat())
    eleven_minutes_ago = time.time() - 660
    os.utime(path, (eleven_minutes_ago, eleven_minutes_ago))
    says = table.act()
    assert says["state"] == "done", says["reason"]
    table.check_rows()
    table.check_truth(says, {})
    conclude(table, says["state"])


@pytest.mark.parametrize("offset", ["+14:00", "-11:00", "+10:30"])
def test_a_heartbeat_in_another_time_zone_is_the_same_moment(offset: str, make: Make, conclude: Conclude) -> None:
    table = make("rewrite_manifests")
    zone = datetime.strptime(offset, "%z").tzinfo
    path = leave_lease(table, datetime.now(UTC).astimezone(zone).isoformat())
    says = table.act()
    assert says["state"] == "refused"
    path.unlink()
    conclude(table, says["state"])


def test_the_proposals_measurement_is_of_tomorrow(make: Make, conclude: Conclude) -> None:
    """The driver's clock was ahead: whether the table is as it was measured goes by its metadata, not by time."""
    table = make("rewrite_manifests")
    measure(table.settings, table.run, [table.name], spark=table.spark)
    document = Path(table.run.metadata_url(table.name), "table.json")
    recorded = json.loads(document.read_text())
    recorded["measured_at"] = (datetime.now(UTC) + timedelta(days=1)).isoformat()
    document.write_text(json.dumps(recorded))
    table.append(300)
    says = table.act()
    assert says["state"] == "done", says["reason"]
    assert says["steps"][0]["details"]["snapshot"].startswith("changed since the proposal")
    table.check_rows()
    table.check_truth(says, {})
    conclude(table, says["state"])


def test_runs_of_a_clock_that_was_ahead_do_not_make_younger_ones_old(tmp_path: Path, outcome: Outcome) -> None:
    run = sample_run.this_week(tmp_path)
    record = Path(run.folder.url, "run.json")
    started = {"dag_id": run.folder.dag_id, "run_id": run.run_id, "started_at": "2199-01-01T00:00:00+00:00"}
    record.write_text(json.dumps(started))
    pruned = prune(sample_run.SETTINGS, run.folder)
    assert pruned.headline["removed"] == 0
    assert record.exists()
    outcome(pruned.status, prune(sample_run.SETTINGS, run.folder).status, "nothing")
