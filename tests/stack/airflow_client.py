"""Airflow of the stack: the Compose file's four services, driven by the REST interface."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

import httpx
from tests.stack.processes import running, wait_until_healthy
from tests.stack.services import Stack

SERVICES = ("airflow-api", "airflow-scheduler", "airflow-dag-processor", "airflow-triggerer")
DAGS = ("planning_health_weekly", "planning_what_if", "table_maintenance")
_START_SECONDS = 300
_RUN_SECONDS = 1800


@dataclass(frozen=True)
class Airflow:
    """A running Airflow.

    Attributes:
        client: authenticated, with the address of the REST interface.
    """

    client: httpx.Client

    def run(self, dag_id: str, conf: Mapping[str, Any]) -> dict[str, Any]:
        """Triggers a Dag and waits for the end of its run.

        Returns:
            The run; its ``state`` is ``success`` or ``failed``.
        """
        answer = self.client.post(f"/dags/{dag_id}/dagRuns", json={"logical_date": None, "conf": dict(conf)})
        assert answer.status_code == 200, answer.text
        return self._end_of(dag_id, answer.json()["dag_run_id"])

    def run_by_event(self, dag_id: str, asset: str, extra: Mapping[str, Any]) -> dict[str, Any]:
        """Emits an event of an asset that schedules a Dag, and waits for the end of the run that it starts."""
        (found,) = self.client.get("/assets", params={"name_pattern": asset}).json()["assets"]
        answer = self.client.post("/assets/events", json={"asset_id": found["id"], "extra": dict(extra)})
        assert answer.status_code == 200, answer.text
        runs = f"/dags/{dag_id}/dagRuns"
        deadline = time.monotonic() + _START_SECONDS
        while not (started := self.client.get(runs, params={"run_type": "asset_triggered"}).json()["dag_runs"]):
            assert time.monotonic() < deadline, f"the event of {asset} started no run of {dag_id}"
            time.sleep(1)
        return self._end_of(dag_id, started[0]["dag_run_id"])

    def _end_of(self, dag_id: str, run_id: str) -> dict[str, Any]:
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
def running_airflow(stack: Stack) -> Iterator[Airflow]:
    """Airflow's four services, each as healthy as the Compose file asks for."""
    stack.run("airflow-init", timeout=_START_SECONDS)
    with ExitStack() as processes:
        started = {
            service: processes.enter_context(
                running(stack.compose.service(service)["command"], stack.log(service), stack.environment(service))
            )
            for service in SERVICES
        }
        for service, process in started.items():
            definition = stack.compose.service(service)
            wait_until_healthy(definition, process, stack.log(service), stack.environment(service))
        address = f"http://{stack.compose.address('airflow')}"
        password = json.loads((stack.compose.folder / "auth" / "passwords.json").read_text())["admin"]
        login = httpx.post(f"{address}/auth/token", json={"username": "admin", "password": password}, timeout=60)
        assert login.status_code == 201, login.text
        headers = {"Authorization": f"Bearer {login.json()['access_token']}"}
        with httpx.Client(base_url=f"{address}/api/v2", headers=headers, timeout=60) as client:
            _unpause(client)
            yield Airflow(client)


def _unpause(client: httpx.Client) -> None:
    """Switches the Dags on, as a person does, once they are parsed."""
    deadline = time.monotonic() + _START_SECONDS
    while client.get("/dags").json()["total_entries"] < len(DAGS):
        assert time.monotonic() < deadline, f"the Dags were not parsed: {client.get('/importErrors').text}"
        time.sleep(1)
    for dag_id in DAGS:
        answer = client.patch(f"/dags/{dag_id}", json={"is_paused": False})
        assert answer.status_code == 200, answer.text
