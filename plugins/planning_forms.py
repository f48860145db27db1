"""What the forms of the manual Dags share: the table to choose, the choices offered, and the settings behind them."""

from __future__ import annotations

from typing import Any, Final

from airflow.sdk import Param

from planning_health.settings import SettingsDocument, load_settings
from planning_health.stages.run_record import known_tables
from planning_run import settings_file

METRICS_MODES: Final = ("none", "counts", "truncate(16)", "full")
"""The metrics modes that a form offers."""


def run_settings_and_tables() -> tuple[SettingsDocument, list[str]]:
    """The settings, and the tables of the newest discovery, sorted so that Dag versions do not multiply."""
    settings = load_settings(settings_file())
    return settings, known_tables(settings)


def table_param(tables: list[str]) -> Param:
    """The field for the table: a choice of the discovered ones; free text before the first discovery."""
    offered: dict[str, Any] = {"enum": tables} if tables else {"minLength": 5}
    return Param(
        type="string",
        title="Table",
        description_md="A table of the newest discovery."
        if tables
        else "`catalog.namespace.table`; parts with dots, "
        "spaces or dashes in back quotes. After the first run of `planning_health_weekly` the tables are offered here.",
        **offered,
    )
