"""``python -m planning_health.demo``: the demonstration run; with ``airflow`` the UI, with ``lake`` the lake alone."""

from __future__ import annotations

import sys

from rich.console import Console
from rich.markup import escape

from planning_health.errors import PlanningHealthError


def main() -> None:
    """Runs the demonstration or the UI; an error is one line and an exit status."""
    command = sys.argv[1] if len(sys.argv) > 1 else "run"
    try:
        if command == "lake":
            from planning_health.demo.run import build_lake_here

            build_lake_here()
        elif command == "airflow":
            from planning_health.demo.airflow_server import serve

            serve(_console())
        else:
            from planning_health.demo.run import run_demo

            run_demo(_console())
    except PlanningHealthError as error:
        Console(stderr=True).print(f"[bold red]error:[/] {escape(str(error))}", highlight=False, soft_wrap=True)
        sys.exit(error.exit_status)


def _console() -> Console:
    """The terminal; a log file gets lines that are wide enough for the summary."""
    console = Console()
    return console if console.is_terminal else Console(width=140)


if __name__ == "__main__":
    main()
