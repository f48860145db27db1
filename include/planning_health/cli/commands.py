"""Imports every module that registers sub-commands, in the order in which the help lists them."""

# ruff: noqa: I001 - the order is the help's: first what a newcomer needs first
from planning_health.cli import demo, list_tables, tables, report, plan, what_if, assign, plan_tasks, serve
from planning_health.cli import advise, maintain, verify

__all__ = [
    "advise",
    "assign",
    "demo",
    "list_tables",
    "maintain",
    "plan",
    "plan_tasks",
    "report",
    "serve",
    "tables",
    "verify",
    "what_if",
]
