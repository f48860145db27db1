"""The pages mounted by the plugin in Airflow's own API server: its login and permissions decide."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from planning_health.pages.links import in_airflow, table_path

from .homes import two_weeks

pytestmark = pytest.mark.airflow

REPOSITORY = Path(__file__).parents[2]
REFUSED = {"list": 401, "style": 401, "form": 401, "offered": False, "start": 401, "foreign start": 401}

MEASURE_PLUGIN = """
import json, sys, time
import airflow.plugins_manager, airflow.sdk, airflow.sdk.configuration
import airflow.providers.standard.decorators.python
before, began = set(sys.modules), time.process_time()
import planning_health_page
seconds = time.process_time() - began
print(json.dumps({"seconds": seconds, "new": sorted(set(sys.modules) - before)}))
"""


def environment(home: Path) -> dict[str, str]:
    return os.environ | {
        "AIRFLOW_HOME": str(home / "airflow"),
        "AIRFLOW__CORE__PLUGINS_FOLDER": str(REPOSITORY / "plugins"),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW__USAGE_DATA_COLLECTION__ENABLED": "False",
        "AIRFLOW__API_AUTH__JWT_SECRET": "a secret of the tests, long enough for SHA-512 to be content with it, twice",
        "PLANNING_HEALTH_HOME": str(home),
        "PYTHONPATH": os.pathsep.join((str(REPOSITORY / "plugins"), str(REPOSITORY / "include"))),
    }


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What Airflow answered."""
    home = two_weeks(tmp_path_factory.mktemp("home"))
    (home / "tables.json").write_text(json.dumps(["lake.sales.customers"]))
    command = [sys.executable, str(Path(__file__).with_name("in_airflow.py")), str(REPOSITORY / "dags")]
    done = subprocess.run(command, env=environment(home), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-4000:]
    answered: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return answered


def test_who_has_not_logged_in_is_refused_everywhere(told: dict[str, Any]) -> None:
    assert told["answers"]["nobody"] == REFUSED


def test_a_forged_token_is_refused_everywhere(told: dict[str, Any]) -> None:
    refused = told["answers"]["forged"]
    assert {refused[page] for page in refused if page != "offered"} <= {401, 403}
    assert refused["offered"] is False


def test_who_may_only_look_is_shown_the_pages_and_cannot_start_a_run(told: dict[str, Any]) -> None:
    viewer = told["answers"]["viewer"]
    assert (viewer["list"], viewer["form"], viewer["offered"]) == (200, 200, False)
    assert viewer["start"] == 403


@pytest.mark.parametrize("role", ["user", "admin"])
def test_who_may_start_runs_can_start_maintenance_but_only_from_the_page_itself(
    told: dict[str, Any], role: str
) -> None:
    person = told["answers"][role]
    assert (person["list"], person["offered"], person["start"]) == (200, True, 303)
    assert person["foreign start"] == 403


def test_the_run_has_the_proposals_values_and_the_persons_name(told: dict[str, Any]) -> None:
    form = {"table": "lake.sales.customers", "actions": ["rewrite_manifests"], "spec_id": 0}
    started = form | {"dry_run": True, "approval": True}
    assert told["runs"] == [["user", started], ["admin", started]]


def test_the_ui_is_told_where_the_page_is_by_a_name_that_its_navigation_has_room_for(told: dict[str, Any]) -> None:
    (view,) = told["views"]
    assert view["name"] == "Planning"
    assert view["href"] == "/planning-health/"
    assert (view["destination"], view["url_route"]) == ("nav", "planning-health")


def test_loading_the_plugin_is_quick_and_imports_nothing_heavy(tmp_path: Path) -> None:
    command = [sys.executable, "-c", MEASURE_PLUGIN]
    done = subprocess.run(command, env=environment(tmp_path), capture_output=True, text=True, check=True)
    loaded = json.loads(done.stdout.splitlines()[-1])
    heavy = {"pyspark", "pandas", "great_expectations", "pyarrow", "pyiceberg", "numpy", "numba", "jinja2"}
    assert [name for name in loaded["new"] if name.partition(".")[0] in heavy] == []
    assert loaded["seconds"] < 0.5


def test_links_from_tasks_lead_to_the_page_inside_the_ui() -> None:
    path = table_path("lake.sales.orders")
    assert in_airflow("https://a.example", path) == (
        "https://a.example/plugin/planning-health/planning-health/table?name=lake.sales.orders"
    )
    assert in_airflow("https://a.example/airflow/", path) == (
        "https://a.example/airflow/plugin/planning-health/airflow/planning-health/table?name=lake.sales.orders"
    )
