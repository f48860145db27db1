"""A real Airflow on a small lake, and a real browser before it. Without a browser these tests fail; none is skipped."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from planning_health.demo.tables import TableWriter
from planning_health.identifiers import TableName
from planning_health.settings import SettingsDocument

if TYPE_CHECKING:
    from playwright.sync_api import APIRequestContext, Browser, BrowserContext, Page
    from pyspark.sql import SparkSession

try:
    from playwright.sync_api import expect, sync_playwright
except ImportError as error:
    raise pytest.UsageError("Playwright is not installed: run `make test-ui`, or pip install '.[dev,ui]'") from error

EVENTS = TableName("lake", ("ui",), "late_events")
COMMITS = 12
RUN_SECONDS = 400
PATIENCE_MS = 20_000
"""How long a page may take to show what is waited for."""

_START_SECONDS = 240
_LOGIN = re.compile(r"Airflow: (\S+) +login: (\S+) +password: (\S+)")


@dataclass(frozen=True)
class Airflow:
    """An Airflow that runs: its address, and who may log in."""

    url: str
    login: str
    password: str

    def start(self, request: APIRequestContext, dag_id: str, **form: Any) -> str:
        """Starts a run of a Dag as the UI does, and waits until it has succeeded; the run's id."""
        runs = f"{self.url}/api/v2/dags/{dag_id}/dagRuns"
        answer = request.post(runs, data={"logical_date": None, "conf": form})
        assert answer.ok, answer.text()
        run_id = str(answer.json()["dag_run_id"])
        until(lambda: self.state(request, dag_id, run_id) == "success", f"run {run_id} of {dag_id} succeeds")
        return run_id

    def await_decision(self, request: APIRequestContext, dag_id: str) -> None:
        """Waits until a run of a Dag waits for a person."""
        pending = f"{self.url}/api/v2/dags/{dag_id}/dagRuns/~/hitlDetails?response_received=false"
        until(lambda: request.get(pending).json()["total_entries"] > 0, f"{dag_id} waits for a decision")

    def state(self, request: APIRequestContext, dag_id: str, run_id: str) -> str:
        """The state of a run; a failed one ends the test."""
        answer = request.get(f"{self.url}/api/v2/dags/{dag_id}/dagRuns/{run_id.replace('+', '%2B')}")
        state = str(answer.json()["state"])
        assert state != "failed", f"run {run_id} of {dag_id} failed"
        return state


def until(holds: Any, what: str, seconds: float = RUN_SECONDS) -> None:
    """Waits until something holds."""
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, f"{what}: not within {seconds:.0f} s"
        time.sleep(2)


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """The distribution's Chromium."""
    found = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if found is None:
        pytest.fail("no Chromium here: install it (apt install chromium), then run `make test-ui` again", pytrace=False)
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=found, args=["--no-sandbox"])
        yield chromium
        chromium.close()


@pytest.fixture(scope="session")
def airflow(
    spark: SparkSession, settings: SettingsDocument, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Airflow]:
    """Airflow on a table whose every commit holds late data, with approval required."""
    _late_events(spark)
    home = tmp_path_factory.mktemp("ui")
    (home / "settings.yaml").write_text(yaml.safe_dump(_settings(settings, home)))
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PLANNING_HEALTH")}
    environment |= {
        "PLANNING_HEALTH_SETTINGS": str(home / "settings.yaml"),
        "PLANNING_HEALTH_AIRFLOW_PORT": str(port),
        "COLUMNS": "200",
    }
    with (home / "airflow.log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "planning_health.demo", "airflow"],
            env=environment,
            stdout=log,
            stderr=log,
            process_group=0,
        )
        try:
            yield _when_ready(process, home / "airflow.log")
        finally:
            process.send_signal(signal.SIGINT)
            process.wait(60)


def _late_events(spark: SparkSession) -> None:
    spark.sql("CREATE NAMESPACE IF NOT EXISTS lake.ui")
    spark.sql(
        f"CREATE TABLE {EVENTS.sql} (id BIGINT, happened_on DATE) USING iceberg PARTITIONED BY (days(happened_on)) "
        "TBLPROPERTIES ('commit.manifest-merge.enabled' = 'false')"
    )
    for commit in range(COMMITS):
        day = "date_add(DATE'2026-01-01', CAST(id % 100 AS INT)) AS happened_on"
        TableWriter(spark, EVENTS).append(100, "id", day, first_id=commit * 100)


def _settings(settings: SettingsDocument, home: Path) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(settings.model_dump_json())
    lake = document["catalogs"]["lake"]["properties"]
    return document | {
        "home": str(home),
        "catalogs": {
            "lake": {"properties": {key: value.replace("${home}", settings.home) for key, value in lake.items()}}
        },
        "tables": [
            {"match": EVENTS.dotted, "queries": [{"name": "one_day", "where": "happened_on = DATE'2026-02-20'"}]},
            {"match": "*", "exclude": True},
        ],
        "maintenance": document["maintenance"] | {"approval": "required", "approval_timeout": "PT150S"},
    }


def _when_ready(process: subprocess.Popen[bytes], log: Path) -> Airflow:
    def told() -> re.Match[str] | None:
        assert process.poll() is None, log.read_text()
        return _LOGIN.search(log.read_text())

    until(told, "Airflow starts", _START_SECONDS)
    match = told()
    assert match is not None
    return Airflow(*match.groups())


def log_in(context: BrowserContext, airflow: Airflow) -> Page:
    """A person who has logged in."""
    page = context.new_page()
    page.goto(airflow.url)
    page.locator("input[name=username]").fill(airflow.login)
    page.locator("input[name=password]").fill(airflow.password)
    page.keyboard.press("Enter")
    page.get_by_role("link", name="Dags", exact=True).wait_for()
    return page


@pytest.fixture(scope="session")
def measured(browser: Browser, airflow: Airflow) -> None:
    """The first weekly run has measured the table."""
    profile = browser.new_context()
    log_in(profile, airflow)
    airflow.start(profile.request, "planning_health_weekly")
    profile.close()


@pytest.fixture
def context(browser: Browser, tmp_path: Path) -> Iterator[BrowserContext]:
    """A browser profile of its own: nobody is logged in. What it showed last is kept as a picture."""
    profile = browser.new_context(viewport={"width": 1280, "height": 900})
    profile.set_default_timeout(PATIENCE_MS)
    expect.set_options(timeout=PATIENCE_MS)
    yield profile
    for number, page in enumerate(profile.pages):
        page.screenshot(path=tmp_path / f"last-{number}.png")
    profile.close()
