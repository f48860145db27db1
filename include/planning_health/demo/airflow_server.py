"""Airflow's UI, scheduler and Dag processor on the demonstration lake, until Ctrl-C; bound to this machine only.

The components are started one by one, so that all of them end with us: ``airflow standalone`` would leave children
behind, and would serve logs to the network.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request
from typing import Final

import psutil
from rich.console import Console
from rich.markup import escape

from planning_health.catalogs.java import require_java
from planning_health.demo.airflow_home import LOGIN, AirflowHome, prepare_airflow_home
from planning_health.demo.run import build_lake_once
from planning_health.errors import WorkFailedError
from planning_health.run_folder import make_folder
from planning_health.settings import load_settings
from planning_health.settings.load import DEMO_SETTINGS, settings_path

PORT_VARIABLE: Final = "PLANNING_HEALTH_AIRFLOW_PORT"
_DEFAULT_PORT: Final = 8080
_START_SECONDS: Final = 180
_GRACE_SECONDS: Final = 15
_COMPONENTS: Final = (
    ("api-server", "--workers", "1"),
    ("scheduler", "--skip-serve-logs"),
    ("dag-processor",),
    ("triggerer", "--skip-serve-logs"),
)


def serve(console: Console) -> None:
    """Starts Airflow, prints address and login, and waits until it is interrupted.

    The demonstration lake is built where its own settings are used: nothing is written into somebody's catalog.

    Raises:
        InputError: when Java or Airflow is missing, or the home folder cannot be used.
        WorkFailedError: when a component ends by itself, or the UI does not answer in time.
    """
    require_java()
    settings = load_settings(settings_path())
    if settings_path().resolve() == DEMO_SETTINGS.resolve():
        build_lake_once(settings, console)
    airflow = prepare_airflow_home(settings)
    port = _free_port()
    processes: list[subprocess.Popen[bytes]] = []
    log = airflow.folder / "logs" / "server.log"
    make_folder(log.parent)
    for ending in (signal.SIGINT, signal.SIGTERM):  # a shell starts background jobs with SIGINT ignored
        signal.signal(ending, signal.default_int_handler)
    try:
        with log.open("ab") as output:
            _start(airflow, port, processes, output.fileno())
        console.print(f"Starting Airflow; its log is {escape(str(log))}")
        _wait_until_ready(port, processes)
        console.print(
            f"Airflow: [bold]http://localhost:{port}[/]   login: {LOGIN}   password: {escape(airflow.password)}"
        )
        console.print("Ctrl-C ends it.")
        while True:
            _check_alive(processes)
            time.sleep(1)
    except KeyboardInterrupt:
        console.print("Ending Airflow.")
    finally:
        _end(processes)


def _start(airflow: AirflowHome, port: int, processes: list[subprocess.Popen[bytes]], output: int) -> None:
    address = f"http://localhost:{port}"
    environment = dict(airflow.environment) | {
        "AIRFLOW__API__BASE_URL": address,
        "AIRFLOW__CORE__EXECUTION_API_SERVER_URL": f"{address}/execution/",
        "AIRFLOW__API__HOST": "127.0.0.1",
        "AIRFLOW__API__PORT": str(port),
        "AIRFLOW__SCHEDULER__ENABLE_HEALTH_CHECK": "False",
    }
    processes.extend(
        subprocess.Popen(  # noqa: S603
            airflow.command(*component), env=environment, stdout=output, stderr=output, process_group=0
        )
        for component in _COMPONENTS
    )


def _free_port() -> int:
    wanted = int(os.environ.get(PORT_VARIABLE, _DEFAULT_PORT))
    for port in (wanted, 0):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            with contextlib.suppress(OSError):
                probe.bind(("127.0.0.1", port))
                return int(probe.getsockname()[1])
    raise WorkFailedError("no free port on this machine")


def _wait_until_ready(port: int, processes: list[subprocess.Popen[bytes]]) -> None:
    deadline = time.monotonic() + _START_SECONDS
    while time.monotonic() < deadline:
        _check_alive(processes)
        with contextlib.suppress(urllib.error.URLError, OSError):
            urllib.request.urlopen(f"http://127.0.0.1:{port}/api/v2/version", timeout=5).close()
            return
        time.sleep(1)
    raise WorkFailedError(f"Airflow's UI did not answer within {_START_SECONDS} s")


def _check_alive(processes: list[subprocess.Popen[bytes]]) -> None:
    for process, (component, *_) in zip(processes, _COMPONENTS, strict=False):
        if process.poll() is not None:
            raise WorkFailedError(f"Airflow's {component} ended with status {process.returncode}: see its log")


def _end(processes: list[subprocess.Popen[bytes]]) -> None:
    """Ends the components and all that they started: a running task and its Spark are in groups of their own."""
    family = [psutil.Process(process.pid) for process in processes if process.poll() is None]
    family += [child for parent in list(family) for child in parent.children(recursive=True)]
    for process in family:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.terminate()
    _, alive = psutil.wait_procs(family, timeout=_GRACE_SECONDS)
    for process in alive:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()
    psutil.wait_procs(alive, timeout=_GRACE_SECONDS)
