"""What the forms of the manual Dags share: the table to choose, the choices offered, and the settings behind them."""

from __future__ import annotations

from typing import Any, Final

from airflow.sdk import Param

from planning_health.settings import SettingsDocument, load_settings
from planning_health.stages.run_record import known_tables
from planning_run import settings_file

METRICS_MODES: Final = ("none", "counts", "truncate(16)", "full")
"""The metrics modes that a form offers."""

_LINES: Final[dict[str, Any]] = {"default": [], "type": ["array", "null"], "items": {"type": "string"}}
_LAYOUT: Final[dict[str, dict[str, Any]]] = {
    "target_manifest_bytes": {
        "default": None,
        "type": ["integer", "null"],
        "minimum": 1024,
        "title": "Target size of a manifest, in bytes",
    },
    "sort_by": {**_LINES, "title": "Sort by partition fields"},
    "metrics_default": {
        "default": None,
        "type": ["string", "null"],
        "examples": list(METRICS_MODES),
        "title": "Statistics of columns, default",
    },
    "metrics_columns": {**_LINES, "title": "Statistics of single columns"},
}
"""Fields on a table's layout, which several forms have; all may stay empty."""


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


def layout_param(name: str, section: str, help_md: str) -> Param:
    """A field on the table's layout, in a section of the form and with the help that this form needs."""
    return Param(description_md=help_md, section=section, **_LAYOUT[name])
