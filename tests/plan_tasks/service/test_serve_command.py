"""`planning-health serve` as a process: it starts, answers, logs JSON and ends; bad input is exit status 2."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
import requests
from pyiceberg.catalog.sql import SqlCatalog
from tests.plan_tasks.service.conftest import EVENTS
from tests.plan_tasks.service.serving import Client

from planning_health.cli import main
from planning_health.settings import SettingsDocument

COMMAND = [sys.executable, "-c", "from planning_health.cli import main; main()", "serve"]
BEARER = "s3cr3t"


@pytest.fixture(scope="module")
def settings_file(
    lake_settings: SettingsDocument, writer: SqlCatalog, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    file = tmp_path_factory.mktemp("settings") / "settings.yaml"
    file.write_text(lake_settings.model_dump_json(include={"version", "home", "catalogs"}))
    return file


def test_the_command_serves_until_it_is_told_to_end(settings_file: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [*COMMAND, "lake", "--port", str(port), "--batch-size", "4", "--settings", str(settings_file)]
    process = subprocess.Popen(
        command, stderr=subprocess.PIPE, text=True, env=os.environ | {"PLANNING_HEALTH_SERVE_TOKEN": BEARER}
    )
    try:
        session = requests.Session()
        session.headers["Authorization"] = f"Bearer {BEARER}"
        url = f"http://127.0.0.1:{port}"
        _wait_for(session, url)
        assert requests.get(f"{url}/v1/config", timeout=10).status_code == 401
        assert (
            len(
                session.post(Client(url, None, session).table(EVENTS) + "/plan", json={}, timeout=60).json()[
                    "plan-tasks"
                ]
            )
            == 5
        )
    finally:
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate(timeout=30)
    lines = [json.loads(line) for line in errors.splitlines() if line.startswith("{")]
    assert [line["status"] for line in lines][-2:] == [401, 200]
    assert {"timestamp", "method", "route", "ms", "bytes", "id"} <= lines[-1].keys()
    assert BEARER not in errors


def _wait_for(session: requests.Session, url: str) -> None:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        try:
            session.get(f"{url}/v1/config", timeout=5).raise_for_status()
        except requests.ConnectionError:
            time.sleep(0.1)
        else:
            return
    raise AssertionError("the service did not start within a minute")


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["sea"], "sea"),
        (["--tokens", "magic"], "magic"),
        (["--batch-size", "-1"], "batch_size"),
        (["--cache-mib", "-1"], "cache_bytes"),
        (["--host", "0.0.0.0"], "PLANNING_HEALTH_SERVE_TOKEN"),  # noqa: S104 - refused
    ],
)
def test_bad_input_ends_with_status_2_and_names_the_value(
    settings_file: Path,
    arguments: list[str],
    named: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.delenv("PLANNING_HEALTH_SERVE_TOKEN", raising=False)
    monkeypatch.setattr(sys, "argv", ["planning-health", "serve", *arguments, "--settings", str(settings_file)])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    assert named in capsys.readouterr().err
