"""What holds for every Dag: it parses, quickly and without heavy imports, and keeps the house policy."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from airflow.dag_processing.dagbag import DagBag

if TYPE_CHECKING:
    from airflow.sdk import DAG

pytestmark = pytest.mark.airflow

REPOSITORY = Path(__file__).parents[2]
DAGS = {
    "planning_health_weekly": "@weekly",
    "planning_what_if": None,
    "table_maintenance": None,
}
"""Every Dag and its schedule: a new Dag file is listed here, or a test fails."""

HEAVY = ("pyspark", "pandas", "great_expectations", "pyarrow", "pyiceberg", "matplotlib", "numpy", "sqlglot")

MEASURE_PARSING = """
import json, sys, time
from airflow.dag_processing.dagbag import DagBag
from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.providers.standard.operators.hitl import ApprovalOperator
DagBag("/dev/null")
before, began = set(sys.modules), time.process_time()
bag = DagBag(sys.argv[1])
seconds = time.process_time() - began
print(json.dumps({"seconds": seconds, "dags": sorted(bag.dags), "new": sorted(set(sys.modules) - before)}))
"""


@pytest.fixture(scope="module")
def bag() -> DagBag:
    return DagBag(str(REPOSITORY / "dags"))


@pytest.fixture(params=DAGS)
def dag(request: pytest.FixtureRequest, bag: DagBag) -> DAG:
    found: DAG = bag.dags[request.param]
    return found


def test_all_dags_parse_and_all_are_listed_here(bag: DagBag) -> None:
    assert bag.import_errors == {}
    assert set(bag.dags) == set(DAGS)


def test_parsing_is_quick_and_imports_nothing_heavy(tmp_path: Path) -> None:
    environment = os.environ | {
        "AIRFLOW_HOME": str(tmp_path),
        "PYTHONPATH": str(REPOSITORY / "plugins"),
        "PLANNING_HEALTH_HOME": str(tmp_path / "home"),
    }
    command = [sys.executable, "-c", MEASURE_PARSING, str(REPOSITORY / "dags")]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    parsed = json.loads(done.stdout.splitlines()[-1])
    assert parsed["dags"] == sorted(DAGS)
    assert [name for name in parsed["new"] if name.partition(".")[0] in HEAVY] == []
    assert parsed["seconds"] < 1.0


def test_the_command_line_s_report_takes_the_steps_of_the_weekly_dag(bag: DagBag) -> None:
    from planning_health.cli.report import TABLE_STEPS

    weekly = bag.dags["planning_health_weekly"]
    mapped = {task.label for task in weekly.tasks if task.task_id.startswith("table_health.")}
    assert mapped == {step.__name__ for step in TABLE_STEPS}
    order = {step.__name__: place for place, step in enumerate(TABLE_STEPS)}
    for task in weekly.tasks:
        for earlier in task.upstream_list:
            if task.label in order and earlier.label in order:
                assert order[earlier.label] < order[task.label]


def test_it_says_whose_it_is_and_what_to_do_when_it_fails(dag: DAG) -> None:
    assert {"iceberg", "planning-health"} <= set(dag.tags)
    assert {task.owner for task in dag.tasks} == {"data-platform"}
    assert dag.doc_md
    assert "**When it fails.**" in dag.doc_md
    assert "**Steps.**" in dag.doc_md


def test_it_runs_once_at_a_time_and_never_catches_up(dag: DAG) -> None:
    assert dag.max_active_runs == 1
    assert dag.catchup is False


def test_its_schedule_is_as_listed(dag: DAG) -> None:
    schedule = DAGS[dag.dag_id]
    assert dag.timetable.can_be_scheduled is (schedule is not None)


def test_every_field_of_a_form_has_a_title_and_help_and_all_but_the_table_a_valid_default(dag: DAG) -> None:
    for name in dag.params:
        param = dag.params.get_param(name)
        assert param.schema.get("title"), name
        assert param.schema.get("description_md"), name
        if name != "table":
            param.resolve()


def test_only_the_last_task_decides_about_the_run(dag: DAG) -> None:
    assert [task.task_id for task in dag.tasks if not task.downstream_list] == ["conclude"]
    assert dag.get_task("conclude").trigger_rule == "all_done"


def test_the_runbook_names_every_step(dag: DAG) -> None:
    for task in dag.tasks:
        name = task.task_id.rpartition(".")[2]
        if name != "tables":  # only lists what the mapped tasks below it are mapped over
            assert f"`{name}`" in (dag.doc_md or ""), name


def test_maintenance_acts_one_table_at_a_time_and_only_after_a_dry_run(bag: DagBag) -> None:
    dag = bag.dags["table_maintenance"]
    assert dag.get_task("act").pool == "planning_health_maintenance"
    assert dag.params["dry_run"] is True
    assert dag.params["approval"] is True


def test_no_dag_relies_on_a_logical_date_which_a_manual_run_lacks() -> None:
    for file in (*(REPOSITORY / "dags").glob("*.py"), *(REPOSITORY / "plugins").glob("*.py")):
        text = file.read_text()
        assert not [word for word in ("logical_date", "data_interval", "{{ ds", "execution_date") if word in text]


def test_the_weekly_run_waits_for_its_day_when_it_is_switched_on(bag: DagBag) -> None:
    assert bag.dags["planning_health_weekly"].start_date is None


def test_the_offered_tables_come_sorted_from_the_newest_discovery(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from planning_forms import run_settings_and_tables, table_param

    monkeypatch.setenv("PLANNING_HEALTH_HOME", str(tmp_path))
    assert run_settings_and_tables()[1] == []
    assert "enum" not in table_param([]).schema
    (tmp_path / "tables.json").write_text(json.dumps(["lake.b.t", "lake.a.t"]))
    tables = run_settings_and_tables()[1]
    assert tables == ["lake.a.t", "lake.b.t"]
    assert table_param(tables).schema["enum"] == tables
