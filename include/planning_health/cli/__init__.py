"""The command `planning-health`: the product without Airflow, for people and scripts."""

from planning_health.cli.app import main

__all__ = ["main"]
