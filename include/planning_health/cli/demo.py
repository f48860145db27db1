"""`planning-health demo`: the demonstration lake, the Dags run on it, and the report."""

from __future__ import annotations

from planning_health.cli.app import app
from planning_health.cli.output import console


@app.command("demo", rich_help_panel="Start here")
def demo() -> None:
    """Builds the demonstration lake with Spark, runs the Dags on it, and shows the report."""
    from planning_health.demo.run import run_demo

    run_demo(console)
