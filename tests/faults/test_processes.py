"""Real processes: killed before, in and after the commit, retried while the first is at work, two at once."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from tests.faults.conftest import Conclude, Make
from tests.faults.lake import Table, local
from tests.faults.operations import Seam

from planning_health.maintenance.lease import lease_url
from planning_health.run_folder import RunFolder
from planning_health.settings import SettingsDocument
from planning_health.stages.run_record import start_run

pytestmark = pytest.mark.spark

ROOT = Path(__file__).parents[2]
EACH = pytest.mark.parametrize("action", ["set_properties", "rewrite_manifests", "trim_statistics"])
REWRITING = pytest.mark.parametrize("action", ["rewrite_manifests", "trim_statistics"])


def patient(settings: SettingsDocument) -> SettingsDocument:
    """The same settings; who finds the catalog's database locked waits a minute."""
    lake = settings.catalogs["lake"]
    properties = lake.properties | {"jdbc.busy_timeout": "60000"}
    return settings.model_copy(update={"catalogs": {"lake": lake.model_copy(update={"properties": properties})}})


def start(table: Table, point: str, **environment: str) -> subprocess.Popen[str]:
    """Starts the job in a process group of its own, as Airflow's operator does through spark-submit."""
    run = table.run
    start_run(patient(table.settings), run)
    arguments = ["--home", run.home, "--dag-id", run.dag_id, "--run-id", run.run_id]
    arguments += ["--table", str(table.name), "--request", table.request.model_dump_json()]
    return subprocess.Popen(
        [sys.executable, "-m", "tests.faults.victim", point, *arguments],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": f"{ROOT}:{ROOT / 'include'}"} | environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


def finished(process: subprocess.Popen[str]) -> tuple[int, str]:
    output, _ = process.communicate(timeout=300)
    return process.returncode, output


def says(table: Table) -> str:
    """What the run's result file says; a killed job leaves none."""
    result = table.run.read_result("action", table.name)
    return str(result.data["state"]) if result is not None else "no result"


@EACH
def test_the_job_is_killed_before_the_commit(action: str, make: Make, conclude: Conclude) -> None:
    table = make(action)
    location = table.iceberg().metadata_location
    assert finished(start(table, "before"))[0] == -signal.SIGKILL
    assert says(table) == "no result"
    assert table.iceberg().metadata_location == location
    table.check_rows()
    conclude(table, "no result")


@EACH
def test_the_job_is_killed_after_the_commit(action: str, make: Make, conclude: Conclude) -> None:
    table = make(action)
    assert finished(start(table, "after"))[0] == -signal.SIGKILL
    assert says(table) == "no result"
    assert table.own_snapshots(table.iceberg()) or action == "set_properties"
    table.check_rows()
    snapshots = len(table.iceberg().snapshots())
    conclude(table, "no result")
    assert len(table.iceberg().snapshots()) == snapshots


@contextmanager
def nobody_commits(table: Table) -> Iterator[None]:
    """The catalog can be read; who commits waits for the lock, a minute long."""
    connection = sqlite3.connect(f"{table.settings.home}/catalog.db", isolation_level=None)
    try:
        connection.execute("BEGIN IMMEDIATE")
        yield
        connection.execute("ROLLBACK")
    finally:
        connection.close()


def wait_for_new_metadata(table: Table, process: subprocess.Popen[str]) -> None:
    """Until the job is in its commit: the table's next metadata file is written, the catalog not yet changed."""
    folder = local(table.iceberg().location()) / "metadata"
    known = set(folder.glob("*.metadata.json"))
    deadline = time.monotonic() + 240
    while set(folder.glob("*.metadata.json")) == known:
        assert process.poll() is None, process.communicate()[0]
        assert time.monotonic() < deadline
        time.sleep(0.05)


@EACH
def test_the_job_is_killed_in_the_commit(action: str, make: Make, conclude: Conclude) -> None:
    """Task and Spark are gone, with the new metadata written and the catalog about to be told."""
    table = make(action)
    location = table.iceberg().metadata_location
    with nobody_commits(table):
        process = start(table, "nowhere")
        wait_for_new_metadata(table, process)
        os.killpg(process.pid, signal.SIGKILL)
        assert finished(process)[0] == -signal.SIGKILL
    assert says(table) == "no result"
    assert table.iceberg().metadata_location == location
    table.check_rows()
    conclude(table, "no result")


@REWRITING
def test_spark_dies_in_the_commit_and_the_task_lives(action: str, make: Make, conclude: Conclude) -> None:
    table = make(action)
    status, output = finished(start(table, "jvm"))
    assert (status, says(table)) == (1, "failed"), output
    assert not Path(lease_url(table.settings.home, table.name)).exists()
    table.check_rows()
    conclude(table, says(table))


@REWRITING
def test_spark_dies_right_after_the_commit_and_the_task_lives(action: str, make: Make, conclude: Conclude) -> None:
    table = make(action)
    status, output = finished(start(table, "jvm_after"))
    assert (status, says(table)) == (1, "failed"), output
    assert table.own_snapshots(table.iceberg())
    result = table.run.require_result("action", table.name)
    assert "run it again under the same id" in str(result.reason)
    table.check_rows()
    conclude(table, "failed")


def test_the_job_is_killed_between_the_properties_and_the_manifests(make: Make, conclude: Conclude) -> None:
    table = make("all")
    assert finished(start(table, "between"))[0] == -signal.SIGKILL
    assert says(table) == "no result"
    assert table.iceberg().properties["write.metadata.metrics.default"] == "none"
    assert not table.own_snapshots(table.iceberg())
    table.check_rows()
    conclude(table, "no result")


@REWRITING
def test_the_task_is_retried_while_its_first_job_is_at_work(action: str, make: Make, conclude: Conclude) -> None:
    """The scheduler lost the task and not the job: the second finds the lease of the same run, and the first ends."""
    table = make(action)
    with nobody_commits(table):
        process = start(table, "nowhere")
        wait_for_new_metadata(table, process)
        second = table.act()
        assert second["state"] == "refused"
        assert f"is being maintained by run {table.run.run_id!r}" in second["reason"]
        assert f"process {process.pid}" in second["reason"]
    status, output = finished(process)
    assert (status, says(table)) == (0, "done"), output
    assert len(table.own_snapshots(table.iceberg())) == 1
    table.check_rows()
    conclude(table, says(table))


@REWRITING
def test_the_task_is_retried_when_its_first_job_seems_dead(
    action: str, make: Make, seam: Seam, conclude: Conclude
) -> None:
    """The first job's lease is gone, as after ten minutes without a sign of life; it lands meanwhile."""
    table = make(action)
    outputs: list[tuple[int, str]] = []
    with ExitStack() as lock:
        lock.enter_context(nobody_commits(table))
        process = start(table, "nowhere")
        wait_for_new_metadata(table, process)
        Path(lease_url(table.settings.home, table.name)).unlink()

        def let_the_first_land() -> None:
            lock.close()
            outputs.append(finished(process))

        seam.before(let_the_first_land)
        second = table.act()
    seam.heal()
    assert outputs[0][0] == 0, outputs
    assert second["state"] == "done", second["reason"]
    assert len(table.own_snapshots(table.iceberg())) == 1
    table.check_rows()
    table.check_truth(second, {})
    conclude(table, second["state"])


@REWRITING
def test_two_runs_maintain_one_table(action: str, make: Make, conclude: Conclude) -> None:
    table = make(action)
    other = RunFolder(table.settings.home, "table_maintenance", "another run")
    with nobody_commits(table):
        process = start(table, "nowhere")
        wait_for_new_metadata(table, process)
        refused = table.act(other)
        assert refused["state"] == "refused"
        assert not table.own_snapshots(table.iceberg(), other)
    status, output = finished(process)
    assert (status, says(table)) == (0, "done"), output
    assert table.act(other)["state"] == "no_op"
    table.check_rows()
    conclude(table, says(table))


@pytest.mark.parametrize("zone", ["Pacific/Kiritimati", "America/New_York"])
def test_the_job_runs_in_another_time_zone_than_its_task(zone: str, make: Make, conclude: Conclude) -> None:
    table = make("all")
    status, output = finished(start(table, "nowhere", TZ=zone))
    assert (status, says(table)) == (0, "done"), output
    table.check_rows()
    conclude(table, says(table))
