"""The operator, against a spark-submit of the test's own making."""

from __future__ import annotations

import json
import os
import shutil
import stat
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml
from airflow.sdk.exceptions import AirflowException, AirflowFailException

from planning_health.run_folder import RunFolder
from planning_health.settings import load_settings
from planning_health.stages.run_record import start_run
from spark_job_operator import SparkJobOperator

pytestmark = pytest.mark.airflow

RUN_ID = "manual__2026-11-30T00:00:00+00:00"
SECRET = "hunter2-not-in-any-log"  # noqa: S105 - made up

SUBMIT = """#!PYTHON
import json, os, pathlib, sys
pathlib.Path(HERE, "called.json").write_text(json.dumps({"argv": sys.argv, "env": dict(os.environ)}))
arguments = dict(zip(sys.argv, sys.argv[1:]))
from planning_health.run_folder import RunFolder
from planning_health.identifiers import TableName
folder = RunFolder(arguments["--home"], arguments["--dag-id"], arguments["--run-id"])
"""


@pytest.fixture
def lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A settings file with a secret in an Airflow connection, and a Spark connection."""
    settings = {
        "home": str(tmp_path / "home"),
        "catalogs": {
            "lake": {
                "properties": {"type": "jdbc", "uri": "jdbc:postgresql://db/iceberg", "warehouse": "/w"},
                "secrets": {"jdbc.password": {"airflow_connection": "iceberg_lake", "field": "password"}},
            }
        },
        "spark": {"conf": {"spark.executor.memory": "3g"}, "py_files": "/dist/planning_health.zip"},
    }
    file = tmp_path / "settings.yaml"
    file.write_text(yaml.safe_dump(settings))
    monkeypatch.setenv("PLANNING_HEALTH_SETTINGS", str(file))
    monkeypatch.delenv("PLANNING_HEALTH_HOME", raising=False)
    monkeypatch.setenv("AIRFLOW_CONN_SPARK_DEFAULT", json.dumps({"conn_type": "spark", "host": "local[2]"}))
    monkeypatch.setenv("AIRFLOW_CONN_ICEBERG_LAKE", json.dumps({"conn_type": "generic", "password": SECRET}))
    return tmp_path


def folder_of(lake: Path) -> RunFolder:
    return RunFolder(str(lake / "home"), "a_dag", RUN_ID)


def fake_submit(lake: Path, monkeypatch: pytest.MonkeyPatch, body: str) -> None:
    """Puts a spark-submit first on the PATH that records its call and then runs ``body``."""
    script = lake / "bin" / "spark-submit"
    script.parent.mkdir(exist_ok=True)
    script.write_text(SUBMIT.replace("PYTHON", sys.executable).replace("HERE", repr(str(lake))) + body)
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{script.parent}{os.pathsep}{os.environ['PATH']}")


def execute(operator: SparkJobOperator) -> dict[str, Any]:
    context: Any = {
        "dag_run": SimpleNamespace(dag_id="a_dag", run_id=RUN_ID),
        "task": operator,
        "outlet_events": {},
    }
    result: dict[str, Any] = SparkJobOperator.execute.__wrapped__(operator, context)
    return result


def test_a_complete_result_becomes_the_envelope(lake: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_submit(lake, monkeypatch, 'folder.write_result("measure", headline={"tables": 3}, data={"tables": []})')
    envelope = execute(SparkJobOperator(task_id="measure", job="measure"))
    assert envelope["headline"] == {"tables": 3}
    assert "data" not in envelope


def test_conf_and_arguments_come_from_the_settings(lake: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_submit(lake, monkeypatch, 'folder.write_result("measure")')
    execute(SparkJobOperator(task_id="measure", job="measure"))
    called = json.loads((lake / "called.json").read_text())
    argv = called["argv"]
    assert argv[argv.index("--master") + 1] == "local[2]"
    assert "spark.executor.memory=3g" in argv
    assert argv[argv.index("--py-files") + 1] == "/dist/planning_health.zip"
    assert argv[-6:] == ["--home", str(lake / "home"), "--dag-id", "a_dag", "--run-id", RUN_ID]
    assert argv[-7].endswith("planning_health/jobs/measure.py")
    assert Path(argv[-7]).exists()
    assert called["env"]["PYSPARK_PYTHON"] == sys.executable


def test_a_secret_travels_in_the_environment_only_and_only_while_the_job_runs(
    lake: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    fake_submit(lake, monkeypatch, 'folder.write_result("measure")')
    operator = SparkJobOperator(task_id="measure", job="measure")
    envelope = execute(operator)
    called = json.loads((lake / "called.json").read_text())
    assert called["env"]["PLANNING_HEALTH_SECRET_ICEBERG_LAKE_PASSWORD"] == SECRET
    assert "PLANNING_HEALTH_SECRET_ICEBERG_LAKE_PASSWORD" not in os.environ
    assert SECRET not in json.dumps(called["argv"])
    assert SECRET not in json.dumps(envelope)
    assert SECRET not in repr({name: getattr(operator, name) for name in operator.template_fields})
    out, err = capfd.readouterr()
    assert SECRET not in caplog.text + out + err


def test_the_request_is_one_argument_whatever_it_holds(lake: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_submit(lake, monkeypatch, 'folder.write_result("proposal", table=TableName.parse(arguments["--table"]))')
    request = {"sort_by": ["it's; `x` $(rm -rf /) --conf a=b"]}
    execute(SparkJobOperator(task_id="propose", job="propose", table="lake.s.`Odd 't v1.5`", request=request))
    argv = json.loads((lake / "called.json").read_text())["argv"]
    assert json.loads(argv[argv.index("--request") + 1]) == request
    assert argv[argv.index("--table") + 1] == "lake.s.`Odd 't v1.5`"


def test_a_missing_spark_connection_is_an_error_and_never_yarn(lake: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_submit(lake, monkeypatch, 'folder.write_result("measure")')
    monkeypatch.delenv("AIRFLOW_CONN_SPARK_DEFAULT")
    with pytest.raises(AirflowFailException, match="'spark_default' is not defined: create it"):
        execute(SparkJobOperator(task_id="measure", job="measure"))
    assert not (lake / "called.json").exists()


def test_a_missing_secret_field_is_named(lake: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_ICEBERG_LAKE", json.dumps({"conn_type": "generic", "login": "reader"}))
    with pytest.raises(AirflowFailException, match="'iceberg_lake' has no field 'password'"):
        execute(SparkJobOperator(task_id="measure", job="measure"))


def test_secrets_of_connections_do_not_silently_miss_a_driver_in_the_cluster(
    lake: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    connection = {"conn_type": "spark", "host": "yarn", "extra": {"deploy-mode": "cluster"}}
    monkeypatch.setenv("AIRFLOW_CONN_SPARK_DEFAULT", json.dumps(connection))
    with pytest.raises(AirflowFailException, match="deploys the driver in the cluster"):
        execute(SparkJobOperator(task_id="measure", job="measure"))


def test_a_table_name_that_cannot_be_read_fails_with_one_line(lake: Path) -> None:
    with pytest.raises(AirflowFailException, match=r"table name 'orders; DROP TABLE x' is not of the form"):
        execute(SparkJobOperator(task_id="propose", job="propose", table="orders; DROP TABLE x", request={}))


def test_success_without_a_result_is_a_failure(lake: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_submit(lake, monkeypatch, "sys.exit(0)")
    with pytest.raises(AirflowException, match="ended without a result"):
        execute(SparkJobOperator(task_id="measure", job="measure"))


def test_a_result_of_an_earlier_attempt_does_not_count(lake: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder_of(lake).write_result("measure", headline={"tables": 1})
    fake_submit(lake, monkeypatch, "sys.exit(0)")
    with pytest.raises(AirflowException, match="ended without a result"):
        execute(SparkJobOperator(task_id="measure", job="measure"))


def test_a_result_of_another_run_does_not_count(lake: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    body = """
path = folder.write_result("measure").path
file = pathlib.Path(folder.home, path)
file.write_text(file.read_text().replace(folder.run_id, "manual__another"))
"""
    fake_submit(lake, monkeypatch, body)
    with pytest.raises(AirflowException, match="is of run 'manual__another'"):
        execute(SparkJobOperator(task_id="measure", job="measure"))


def test_a_job_that_fails_gives_its_reason(lake: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_submit(
        lake, monkeypatch, 'folder.write_result("measure", status="failed", reason="disk is full"); sys.exit(1)'
    )
    with pytest.raises(AirflowException, match="job 'measure' failed: disk is full"):
        execute(SparkJobOperator(task_id="measure", job="measure"))


def test_a_job_that_swallows_its_failure_fails_all_the_same(lake: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_submit(lake, monkeypatch, 'folder.write_result("measure", status="failed", reason="disk is full")')
    with pytest.raises(AirflowException, match="disk is full"):
        execute(SparkJobOperator(task_id="measure", job="measure"))


def test_a_bad_exit_counts_even_beside_a_complete_result(lake: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_submit(lake, monkeypatch, 'folder.write_result("measure"); sys.exit(137)')
    with pytest.raises(AirflowException, match="Error code is: 137"):
        execute(SparkJobOperator(task_id="measure", job="measure"))


def test_what_a_maintenance_job_decided_is_not_tried_again(lake: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    body = """
folder.write_result("action", table=TableName.parse(arguments["--table"]), status="failed", reason="conflict")
"""
    fake_submit(lake, monkeypatch, body)
    with pytest.raises(AirflowFailException, match="conflict"):
        execute(SparkJobOperator(task_id="act", job="act", table="lake.s.t", request={}))


def test_all_steps_of_a_run_use_the_settings_it_began_with(lake: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    start_run(load_settings(), folder_of(lake))
    file = lake / "settings.yaml"
    file.write_text(file.read_text().replace("3g", "4g"))
    fake_submit(lake, monkeypatch, 'folder.write_result("measure")')
    execute(SparkJobOperator(task_id="measure", job="measure"))
    assert "spark.executor.memory=3g" in json.loads((lake / "called.json").read_text())["argv"]


def test_the_spark_submit_beside_the_interpreter_is_the_last_resort(
    lake: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_submit(lake, monkeypatch, 'folder.write_result("measure")')
    execute(SparkJobOperator(task_id="measure", job="measure"))
    path = json.loads((lake / "called.json").read_text())["env"]["PATH"]
    assert path.split(os.pathsep)[0] == str(lake / "bin")
    assert shutil.which("spark-submit", path=str(Path(sys.executable).parent))
    assert path.split(os.pathsep)[-1] == str(Path(sys.executable).parent)
