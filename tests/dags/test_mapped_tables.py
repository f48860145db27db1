"""How many tables a weekly run hands to Airflow's mapped tasks."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.sdk.exceptions import AirflowFailException

import planning_run
from planning_health.run_folder import RunFolder

pytestmark = pytest.mark.airflow


@pytest.fixture
def pushed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What the task pushes, in a run that measured three tables."""
    monkeypatch.setenv("PLANNING_HEALTH_HOME", str(tmp_path))
    folder = RunFolder(str(tmp_path), "planning_health_weekly", "manual__1")
    folder.write_result("measure", data={"tables": ["lake.a.one", "lake.a.three", "lake.a.two"]})
    told: dict[str, Any] = {}
    context = {
        "params": {},
        "dag_run": SimpleNamespace(dag_id="planning_health_weekly", run_id="manual__1"),
        "ti": SimpleNamespace(xcom_push=told.__setitem__),
    }
    monkeypatch.setattr(planning_run, "get_current_context", lambda: context)
    return told


def test_as_many_tables_as_airflow_maps_are_handed_on(pushed: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW__CORE__MAX_MAP_LENGTH", "3")
    assert planning_run.measured_tables() == ["lake.a.one", "lake.a.three", "lake.a.two"]
    assert pushed == {}


def test_more_tables_than_airflow_maps_are_refused_with_the_setting(
    pushed: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AIRFLOW__CORE__MAX_MAP_LENGTH", "2")
    with pytest.raises(AirflowFailException, match=r"3 tables: .* at most 2 .*AIRFLOW__CORE__MAX_MAP_LENGTH of 3"):
        planning_run.measured_tables()
    assert "AIRFLOW__CORE__MAX_MAP_LENGTH" in pushed["failure"]
