"""The demonstration: build the lake, run the Dags on it, and end with the report."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from planning_health.catalogs.java import require_java
from planning_health.demo.airflow_home import AirflowHome, prepare_airflow_home
from planning_health.demo.lake import LAKE_VERSION
from planning_health.errors import WorkFailedError
from planning_health.identifiers import TableName
from planning_health.reports import Report, read_report, terminal_predictions, terminal_summary
from planning_health.run_folder import make_folder
from planning_health.settings import SettingsDocument, load_settings
from planning_health.settings.load import settings_path

MAINTAINED: Final = ("lake.sales.orders", "lake.ops.tickets")
"""The tables that the demonstration repairs: the wide manifests, and the highly deleted ones."""

_TASK: Final = re.compile(r"\[DAG TEST\] (starting|end task) task_id=(\S+) map_index=(-?\d+)")


def run_demo(console: Console) -> None:
    """Builds the lake where it is missing, runs the Dags, and prints where the report lies and what it says.

    The first time it measures, repairs two tables, and measures again; later it measures the lake as it is now.

    Raises:
        InputError: when Java or Airflow is missing, or the home folder cannot be used.
        WorkFailedError: when a Dag run failed; names its log.
    """
    require_java()
    settings = load_settings(settings_path())
    home = Path(settings.home)
    began = time.monotonic()
    with _stage(console, "Preparing Airflow"):
        airflow = prepare_airflow_home(settings)
    build_lake_once(settings, console)
    repaired = home / "demo-repaired"
    if not repaired.exists():
        run_dag(console, airflow, "planning_health_weekly", "Measuring the lake")
        for table in MAINTAINED:
            form = {"table": table, "actions": ["rewrite_manifests"], "dry_run": False, "approval": False}
            run_dag(console, airflow, "table_maintenance", f"Maintaining {table}", form)
        repaired.touch()
    run_dag(console, airflow, "planning_health_weekly", "Measuring the lake and writing the report")
    report = _newest_report(settings)
    console.print(terminal_summary(report))
    if predictions := terminal_predictions(report):
        console.print(predictions)
    address = escape(str(home / "reports" / "latest" / "index.html"))
    console.print(f"Report: [bold]{address}[/] ({time.monotonic() - began:.0f} s)", soft_wrap=True)


def _newest_report(settings: SettingsDocument) -> Report:
    report = read_report(f"{settings.home}/reports/latest/report.json")
    if report is None:
        raise WorkFailedError(f"no report at {settings.home}/reports/latest")
    return report


@contextmanager
def _stage(console: Console, title: str) -> Iterator[_Line]:
    """A line of progress, with the time that the stage took."""
    with Progress(
        SpinnerColumn(finished_text="[green]✓[/]"),
        TextColumn("{task.description}"),
        BarColumn(bar_width=24),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("[dim]{task.fields[detail]}"),
        console=console,
    ) as progress:
        line = _Line(progress, progress.add_task(escape(title), total=1, detail=""))
        yield line
        line.finish()


def build_lake_once(settings: SettingsDocument, console: Console) -> None:
    """Writes the demonstration lake with Spark, in a process of its own, unless that is done already.

    Raises:
        WorkFailedError: when the lake could not be built; names the log.
    """
    built = Path(settings.home) / "lake" / f"built-{LAKE_VERSION}"
    if built.exists():
        return
    log = built.with_name("build.log")
    make_folder(log.parent)
    command = [sys.executable, "-m", "planning_health.demo", "lake"]
    with _stage(console, "Building the demonstration lake") as line, log.open("w", encoding="utf-8") as file:
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=file, text=True) as process:  # noqa: S603
            for text in process.stdout or ():
                line.table(text)
        if process.returncode:
            raise WorkFailedError(f"the demonstration lake could not be built; the log is {log}")
    built.touch()


def build_lake_here() -> None:
    """Builds the lake in this process; a line of ``done total table`` on standard output for each table."""
    from planning_health.catalogs import spark_session
    from planning_health.demo.lake import build_lake

    def tell(table: TableName, done: int, total: int) -> None:
        sys.stdout.write(f"{done} {total} {table}\n")
        sys.stdout.flush()

    spark = spark_session(load_settings(settings_path()), "planning-health demo")
    try:
        build_lake(spark, progress=tell)
    finally:
        spark.stop()


def run_dag(
    console: Console, airflow: AirflowHome, dag_id: str, title: str, form: dict[str, Any] | None = None
) -> None:
    """Runs a Dag to its end in a process of its own, and shows how far it is.

    Raises:
        WorkFailedError: when the run failed, with the reason and where its log lies.
    """
    log = airflow.folder / "logs" / f"demo-{dag_id}-{time.strftime('%Y%m%dT%H%M%S')}.log"
    make_folder(log.parent)
    command = airflow.command("dags", "test", dag_id, *(("--conf", json.dumps(form)) if form else ()))
    with _stage(console, title) as line, log.open("w", encoding="utf-8") as file:
        process = subprocess.Popen(  # noqa: S603
            command,
            env=dict(airflow.environment),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        )
        try:
            for text in process.stdout or ():
                file.write(text)
                line.task(text)
            status = process.wait()
        finally:
            if process.poll() is None:
                process.terminate()
                process.wait()
        if status:
            raise WorkFailedError(f"the run of {dag_id} failed: {_reason(log)}; its log is {log}")


@dataclass
class _Line:
    """One stage's line on the terminal."""

    progress: Progress
    task_id: Any

    def table(self, text: str) -> None:
        """A table of the lake was built: ``done total table``."""
        done, total, table = text.strip().split(" ", 2)
        self.progress.update(self.task_id, completed=int(done), total=int(total), detail=escape(table))

    def task(self, text: str) -> None:
        """A line of a Dag run's log: shows the task that starts, counts those that end."""
        match = _TASK.search(text)
        if match is None:
            return
        event, task, index = match.groups()
        if event == "starting":
            named = task if index == "-1" else f"{task} {int(index) + 1}"
            self.progress.update(self.task_id, detail=escape(named), total=None)
        else:
            self.progress.advance(self.task_id)

    def finish(self) -> None:
        """The stage is done."""
        done = max(1, int(self.progress.tasks[0].completed))
        self.progress.update(self.task_id, completed=done, total=done, detail="")


def _reason(log: Path) -> str:
    """The last exception that the run's log shows."""
    lines = re.findall(r"^(?:\w+\.)*\w*(?:Error|Exception): .+$", log.read_text(encoding="utf-8"), re.MULTILINE)
    return lines[-1] if lines else "no reason was logged"
