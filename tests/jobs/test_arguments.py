"""The command line of the Spark jobs, and the status that a job ends with."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from planning_health.envelope import Envelope
from planning_health.errors import InputError, PlanningHealthError, WorkFailedError
from planning_health.jobs.arguments import JobArguments, parse_arguments, run_job
from planning_health.jobs.measure import _tables
from planning_health.run_folder import RunFolder
from planning_health.settings import SettingsDocument
from planning_health.stages.run_record import start_run


@pytest.fixture
def run(settings: SettingsDocument, tmp_path: Path) -> RunFolder:
    folder = RunFolder(str(tmp_path), "table_maintenance", "manual__2026-01-01T00:00:00+00:00")
    start_run(settings.model_copy(update={"home": str(tmp_path)}), folder)
    return folder


def arguments(monkeypatch: pytest.MonkeyPatch, run: RunFolder, *more: str) -> JobArguments:
    line = ["job", "--home", run.home, "--dag-id", run.dag_id, "--run-id", run.run_id, *more]
    monkeypatch.setattr(sys, "argv", line)
    return parse_arguments()


def test_a_job_works_with_the_settings_that_its_run_began_with(monkeypatch: pytest.MonkeyPatch, run: RunFolder) -> None:
    found = arguments(monkeypatch, run, "--table", "lake.sales.orders", "--request", '{"sort_by": ["day"]}')
    assert (found.run_folder, found.settings.home) == (run, run.home)
    assert str(found.require_table()) == "lake.sales.orders"
    request = found.maintenance_request()
    assert (request.actions, request.sort_by, request.dry_run) == (["rewrite_manifests"], ["day"], True)


def test_a_run_that_was_not_started_has_no_job(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"has no settings\.json: it was not started"):
        arguments(monkeypatch, RunFolder(str(tmp_path), "table_maintenance", "never"))


@pytest.mark.parametrize("request_text", [None, "", "{", "[]", '{"dry_run": "perhaps"}', '{"unknown": 1}'])
def test_a_maintenance_job_needs_a_table_and_a_request(
    monkeypatch: pytest.MonkeyPatch, run: RunFolder, request_text: str | None
) -> None:
    found = arguments(monkeypatch, run, *(("--request", request_text) if request_text is not None else ()))
    with pytest.raises(InputError, match="--table is required"):
        found.require_table()
    with pytest.raises(InputError, match="--request: "):
        found.maintenance_request()


def test_a_measuring_job_takes_the_tables_that_the_run_discovered_unless_it_is_given_one(
    monkeypatch: pytest.MonkeyPatch, run: RunFolder
) -> None:
    run.write_result("discovery", data={"tables": ["lake.a.b", "lake.c.`d.e`"]})
    assert list(map(str, _tables(arguments(monkeypatch, run)))) == ["lake.a.b", "lake.c.`d.e`"]
    assert list(map(str, _tables(arguments(monkeypatch, run, "--table", "lake.x.y")))) == ["lake.x.y"]


@pytest.mark.parametrize(("error", "status"), [(InputError("bad"), 2), (WorkFailedError("failed"), 1)])
def test_an_error_ends_the_job_with_its_status(
    monkeypatch: pytest.MonkeyPatch, run: RunFolder, error: PlanningHealthError, status: int
) -> None:
    arguments(monkeypatch, run)

    def job(_: JobArguments) -> Envelope:
        raise error

    with pytest.raises(SystemExit) as ended:
        run_job(job)
    assert ended.value.code == status


def test_a_job_whose_result_says_failed_has_done_its_work(monkeypatch: pytest.MonkeyPatch, run: RunFolder) -> None:
    arguments(monkeypatch, run)
    run_job(lambda found: found.run_folder.write_result("action", status="failed", reason="a conflict"))
    result = run.read_result("action")
    assert result is not None
    assert (result.status, result.reason) == ("failed", "a conflict")
