"""Every Dag run to its end by Airflow, with real Spark, on a small lake with awkward names."""

from __future__ import annotations

import json
import sqlite3
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from planning_health.demo.airflow_home import AirflowHome, prepare_airflow_home
from planning_health.demo.tables import TableWriter
from planning_health.envelope import ResultFile
from planning_health.identifiers import TableName
from planning_health.run_folder import RunFolder
from planning_health.settings import SettingsDocument, load_settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.airflow, pytest.mark.spark]

EVENTS = TableName("lake", ("dag_runs",), "Late Events' v1.5")
BROKEN = TableName("lake", ("dag_runs",), "broken")
COMMITS = 6


@dataclass(frozen=True)
class Run:
    """One finished Dag run."""

    folder: RunFolder
    succeeded: bool
    states: dict[str, str]
    names: set[str]
    output: str

    def result(self, kind: str, table: TableName | None = None) -> ResultFile:
        return self.folder.require_result(kind, table)


@pytest.fixture(scope="module")
def airflow(spark: SparkSession, settings: SettingsDocument, tmp_path_factory: pytest.TempPathFactory) -> AirflowHome:
    """An Airflow of its own, on two tables of the tests' lake: late data, and one with a manifest missing."""
    spark.sql("CREATE NAMESPACE IF NOT EXISTS lake.dag_runs")
    spark.sql(
        f"CREATE TABLE {EVENTS.sql} (id BIGINT, `Event-Day` DATE) USING iceberg PARTITIONED BY (days(`Event-Day`)) "
        "TBLPROPERTIES ('commit.manifest-merge.enabled' = 'false')"
    )
    spark.sql(f"CREATE TABLE {BROKEN.sql} (id BIGINT) USING iceberg")
    for table, day in ((EVENTS, "date_add(DATE'2026-01-01', CAST(id % 60 AS INT)) AS `Event-Day`"), (BROKEN, None)):
        for commit in range(COMMITS):
            columns = ["id", *([day] if day else [])]
            TableWriter(spark, table).append(60, *columns, first_id=commit * 60)
    TableWriter(spark, BROKEN).lose_a_manifest()

    home = tmp_path_factory.mktemp("dag-runs")
    document = json.loads(settings.model_dump_json()) | {
        "home": str(home),
        "tables": [
            {"match": BROKEN.dotted, "tolerate_failure": True},
            {"match": "lake.dag_runs.*", "queries": [{"name": "one_day", "where": "`Event-Day` = DATE'2026-01-20'"}]},
            {"match": "*", "exclude": True},
        ],
    }
    document["catalogs"] = {
        "lake": {
            "properties": {
                key: value.replace("${home}", settings.home)
                for key, value in document["catalogs"]["lake"]["properties"].items()
            }
        }
    }
    file = home / "settings.yaml"
    file.write_text(yaml.safe_dump(document))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PLANNING_HEALTH_SETTINGS", str(file))
        patch.delenv("PLANNING_HEALTH_HOME", raising=False)
        return prepare_airflow_home(load_settings(), master="local[2]")


def run_dag(airflow: AirflowHome, dag_id: str, **form: Any) -> Run:
    """Runs a Dag through ``dag.test()`` in a process of its own."""
    command = airflow.command("dags", "test", dag_id, *(("--conf", json.dumps(form)) if form else ()))
    done = subprocess.run(command, env=dict(airflow.environment), capture_output=True, text=True, check=False)
    output = done.stdout + done.stderr
    with sqlite3.connect(airflow.folder / "airflow.db") as database:
        (run_id,) = database.execute(
            "SELECT run_id FROM dag_run WHERE dag_id = ? ORDER BY id DESC LIMIT 1", (dag_id,)
        ).fetchone()
        rows = database.execute(
            "SELECT task_id, map_index, state, rendered_map_index FROM task_instance WHERE dag_id = ? AND run_id = ?",
            (dag_id, run_id),
        ).fetchall()
    return Run(
        folder=RunFolder(str(airflow.folder.parent), dag_id, run_id),
        succeeded=done.returncode == 0,
        states={task if index < 0 else f"{task} {name}": state for task, index, state, name in rows},
        names={name for *_, name in rows if name},
        output=output,
    )


@pytest.fixture(scope="module")
def weekly(airflow: AirflowHome) -> Run:
    return run_dag(airflow, "planning_health_weekly")


def test_the_weekly_run_succeeds_although_a_tolerated_table_is_broken(weekly: Run) -> None:
    assert weekly.succeeded, weekly.output[-5000:]
    conclusion = weekly.result("conclusion").data
    assert conclusion["failed"] == {}
    assert list(conclusion["tolerated"]) == [str(BROKEN)]
    assert "is missing" in conclusion["tolerated"][str(BROKEN)]


def test_mapped_tasks_are_named_by_their_table(weekly: Run) -> None:
    assert weekly.names == {str(EVENTS), str(BROKEN)}


def test_every_simulation_is_a_task_output_with_a_full_result_file(weekly: Run, airflow: AirflowHome) -> None:
    with sqlite3.connect(airflow.folder / "airflow.db") as database:
        values = database.execute(
            "SELECT task_id, value FROM xcom WHERE run_id = ? AND key = 'return_value'", (weekly.folder.run_id,)
        ).fetchall()
    envelopes = [json.loads(value) for _, value in values if '"kind"' in value]
    kinds = {(envelope["kind"], envelope["table"]) for envelope in envelopes}
    expected = {"health", "planning", "assignment", "plan_tasks", "proposal"}
    assert {kind for kind, table in kinds if table == str(EVENTS)} == expected
    for envelope in envelopes:
        assert "data" not in envelope
        assert len(envelope["headline"]) <= 20
        assert Path(weekly.folder.home, envelope["path"]).exists()
    assert all(len(value) < 4_000 for _, value in values)


def test_the_unmeasured_table_is_skipped_with_its_reason_and_stops_no_other(weekly: Run) -> None:
    assert weekly.states[f"table_health.diagnose {BROKEN}"] == "skipped"
    assert weekly.states[f"table_health.diagnose {EVENTS}"] == "success"
    assert "not measured" in (weekly.result("health", BROKEN).reason or "")


def test_the_weekly_report_is_published(weekly: Run) -> None:
    latest = Path(weekly.folder.home, "reports", "latest")
    assert {file.name for file in latest.iterdir()} == {"index.html", "mail.html", "report.md", "report.json"}
    text = (latest / "report.md").read_text()
    assert "Late Events" in text
    assert "broken" in text


def test_a_discovery_feeds_the_forms(weekly: Run) -> None:
    assert json.loads(Path(weekly.folder.home, "tables.json").read_text()) == sorted([str(EVENTS), str(BROKEN)])


def test_maintenance_acts_verifies_and_does_nothing_the_second_time(airflow: AirflowHome) -> None:
    form = {"table": str(EVENTS), "dry_run": False, "approval": False}
    first = run_dag(airflow, "table_maintenance", **form)
    assert first.succeeded, first.output[-5000:]
    assert first.states["approve"] == "skipped"
    action = first.result("action", EVENTS).data
    assert action["state"] == "done"
    assert first.result("proposal", EVENTS).headline["manifests_before"] == COMMITS
    assert first.result("action", EVENTS).headline["manifests_after"] == 1
    assert Path(first.folder.home, first.folder.relative_path, "report", "index.html").exists()
    again = run_dag(airflow, "table_maintenance", **form)
    assert again.succeeded, again.output[-5000:]
    assert again.states["act"] == "skipped"
    assert again.result("proposal", EVENTS).data["no_op_reason"]


def test_a_form_that_cannot_be_read_fails_with_one_clear_line_and_touches_nothing(airflow: AirflowHome) -> None:
    run = run_dag(airflow, "table_maintenance", table=str(EVENTS), metrics_default="full", dry_run=False)
    assert not run.succeeded
    assert run.states["read_form"] == "failed"
    assert run.states["propose"] == run.states["act"] == "upstream_failed"
    assert (run.states["report"], run.states["conclude"]) == ("skipped", "failed")
    reason = "metrics modes and the manifest target size need the action 'set_properties'"
    assert reason in run.output
    assert run.result("conclusion").reason == f"read_form: {reason}"


def test_what_if_answers_for_the_given_predicates_and_servers(airflow: AirflowHome) -> None:
    predicates = ["`Event-Day` = DATE'2026-01-03'", "`Event-Day` >= DATE'2026-02-01' AND id < 10"]
    layout = {"spec": "months(`Event-Day`), bucket(4, id)", "metrics_default": "none", "metrics_columns": ["id = full"]}
    run = run_dag(
        airflow, "planning_what_if", table=str(EVENTS), predicates=predicates, workers=3, batch_size=5, **layout
    )
    assert run.succeeded, run.output[-5000:]
    planned = run.result("planning", EVENTS).data
    assert [predicate["where"] for predicate in planned["predicates"]] == predicates
    assert run.result("assignment", EVENTS).data["task_hint"]["workers"] == 3
    assert run.folder.read_result("plan_tasks", EVENTS) is not None
    alternatives = run.result("what_if", EVENTS).data["alternatives"]
    assert [item["id"] for item in alternatives] == ["rewrite_manifests", "metrics", "partition_spec"]
    assert [item["where"] for item in alternatives[2]["predicates"]] == predicates
    assert Path(run.folder.home, run.folder.relative_path, "report", "index.html").exists()
