"""Imports every module that registers sub-commands, in the order in which the help lists them."""

from planning_health.cli import advise, assign, demo, maintain, plan, plan_tasks, report, serve, tables, verify, what_if

__all__ = [
    "advise",
    "assign",
    "demo",
    "maintain",
    "plan",
    "plan_tasks",
    "report",
    "serve",
    "tables",
    "verify",
    "what_if",
]
