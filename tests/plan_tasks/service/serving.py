"""A planning service on loopback for tests, and a client that redeems every plan-task."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

import requests
import uvicorn
from structlog.testing import CapturingLogger

from planning_health.plan_tasks.service import ServiceOptions, create_app
from planning_health.settings import SettingsDocument


@dataclass
class Client:
    """Talks to one service; what it was told in log lines is in ``log``."""

    url: str
    log: CapturingLogger
    session: requests.Session = field(default_factory=requests.Session)

    def table(self, identifier: tuple[str, ...]) -> str:
        *namespace, name = identifier
        levels = "%1F".join(quote(level, safe="") for level in namespace)
        return f"{self.url}/v1/namespaces/{levels}/tables/{quote(name, safe='')}"

    def plan(self, identifier: tuple[str, ...], **request: Any) -> requests.Response:
        body = {name.replace("_", "-"): value for name, value in request.items()}
        return self.session.post(self.table(identifier) + "/plan", json=body, timeout=30)

    def redeem(self, identifier: tuple[str, ...], plan_task: Any) -> requests.Response:
        return self.session.post(self.table(identifier) + "/tasks", json={"plan-task": plan_task}, timeout=30)

    def scan(self, identifier: tuple[str, ...], **request: Any) -> list[dict[str, Any]]:
        """All responses of one scan, the plan's first; every one must be 200."""
        first = self.plan(identifier, **request)
        assert first.status_code == 200, first.text
        answers = [first.json()]
        for plan_task in answers[0].get("plan-tasks", ()):
            answer = self.redeem(identifier, plan_task)
            assert answer.status_code == 200, answer.text
            answers.append(answer.json())
        return answers

    def lines(self, count: int, ending: str = "") -> list[dict[str, Any]]:
        """The log lines of requests whose route ends so; a line is written just after its response was sent."""
        deadline = time.monotonic() + 10
        while True:
            logged = [call.kwargs for call in self.log.calls if call.args == ("request",)]
            found = [line for line in logged if line["route"].endswith(ending)]
            if len(found) >= count or time.monotonic() > deadline:
                return found
            time.sleep(0.01)

    def metric(self, name: str) -> float:
        text = self.session.get(f"{self.url}/metrics", timeout=30).text
        return sum(float(line.rsplit(" ", 1)[1]) for line in text.splitlines() if line.startswith(name))


def tasks(answers: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The tasks of all responses, each with its delete files in place of the references."""
    return [
        task | {"delete-file-references": [answer["delete-files"][i] for i in task.get("delete-file-references", ())]}
        for answer in answers
        for task in answer["file-scan-tasks"]
    ]


def paths(answers: list[dict[str, Any]]) -> list[str]:
    return [task["data-file"]["file-path"] for task in tasks(answers)]


@contextmanager
def serving(settings: SettingsDocument, options: ServiceOptions, catalog: str = "lake") -> Iterator[Client]:
    """Runs the service in a thread of this process."""
    log = CapturingLogger()
    app = create_app(settings, catalog, options, log)
    listening = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(app, log_level="error", access_log=False, timeout_graceful_shutdown=2))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    deadline = time.monotonic() + 30
    while not server.started and time.monotonic() < deadline:
        time.sleep(0.01)
    client = Client(f"http://127.0.0.1:{listening.getsockname()[1]}", log)
    try:
        yield client
    finally:
        client.session.close()
        server.should_exit = True
        thread.join(timeout=10)
        listening.close()
