"""Airflow of the stack, started as `make airflow` starts it, and driven by its REST interface."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
from tests.stack.services import end, free_port

_START_SECONDS = 900
_RUN_SECONDS = 1800


@dataclass(frozen=True)
class Airflow:
    """A running Airflow.

    Attributes:
        client: authenticated, with the address of the REST interface.
        log: output of the components.
    """

    client: httpx.Client
    log: Path

    def run(self, dag_id: str, conf: Mapping[str, Any]) -> dict[str, Any]:
        """Triggers a Dag and waits for the end of its run.

        Returns:
            The run; its ``state`` is ``success`` or ``failed``.
        """
        answer = self.client.post(f"/dags/{dag_id}/dagRuns", json={"logical_date": None, "conf": dict(conf)})
        assert answer.status_code == 200, answer.text
        run_id = answer.json()["dag_run_id"]
        deadline = time.monotonic() + _RUN_SECONDS
        while time.monotonic() < deadline:
            run: dict[str, Any] = self.client.get(f"/dags/{dag_id}/dagRuns/{run_id}").json()
            if run["state"] in ("success", "failed"):
                return run
            time.sleep(2)
        raise AssertionError(f"run {run_id} of {dag_id} did not end within {_RUN_SECONDS} s")

    def xcom(self, run: Mapping[str, Any], task_id: str) -> Any:
        """What a task returned."""
        path = f"/dags/{run['dag_id']}/dagRuns/{run['dag_run_id']}/taskInstances/{task_id}/xcomEntries/return_value"
        return self.client.get(path, params={"deserialize": True}).json()["value"]

    def task_states(self, run: Mapping[str, Any]) -> dict[str, str]:
        """The state of each task; that of mapped ones is their worst."""
        path = f"/dags/{run['dag_id']}/dagRuns/{run['dag_run_id']}/taskInstances"
        tasks = self.client.get(path, params={"limit": 1000}).json()["task_instances"]
        states: dict[str, str] = {}
        for task in tasks:
            if states.get(task["task_id"]) != "failed":
                states[task["task_id"]] = task["state"]
        return states


@contextmanager
def running_airflow(environment: Mapping[str, str], home: Path) -> Iterator[Airflow]:
    """Builds the demonstration lake on the stack and starts Airflow beside it."""
    port = free_port()
    log = home.parent / "airflow.log"
    with log.open("wb") as output:
        lake = [sys.executable, "-m", "planning_health.demo", "lake"]
        subprocess.run(lake, env=dict(environment), stdout=output, stderr=output, check=True, timeout=_START_SECONDS)
        process = subprocess.Popen(
            [sys.executable, "-m", "planning_health.demo", "airflow"],
            env={**environment, "PLANNING_HEALTH_AIRFLOW_PORT": str(port)},
            stdout=output,
            stderr=output,
            process_group=0,
        )
        try:
            token = _token(process, port, home / "airflow" / "passwords.json", log)
            headers = {"Authorization": f"Bearer {token}"}
            with httpx.Client(base_url=f"http://127.0.0.1:{port}/api/v2", headers=headers, timeout=60) as client:
                _until_parsed(client)
                yield Airflow(client, log)
        finally:
            end(process)


def _token(process: subprocess.Popen[Any], port: int, passwords: Path, log: Path) -> str:
    deadline = time.monotonic() + _START_SECONDS
    while time.monotonic() < deadline:
        assert process.poll() is None, f"Airflow ended:\n{log.read_text()[-3000:]}"
        try:
            login = {"username": "admin", "password": json.loads(passwords.read_text())["admin"]}
            answer = httpx.post(f"http://127.0.0.1:{port}/auth/token", json=login, timeout=30)
        except (OSError, httpx.TransportError):
            time.sleep(1)
            continue
        assert answer.status_code == 201, answer.text
        return str(answer.json()["access_token"])
    raise AssertionError(f"Airflow did not start within {_START_SECONDS} s:\n{log.read_text()[-3000:]}")


def _until_parsed(client: httpx.Client) -> None:
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        if client.get("/dags").json()["total_entries"] >= 3:
            return
        time.sleep(1)
    raise AssertionError(f"the Dags were not parsed: {client.get('/importErrors').text}")
