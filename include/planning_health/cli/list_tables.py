"""`planning-health tables`: what the settings' catalogs hold, and which of it is measured by which rule."""

from __future__ import annotations

from typing import Any

from planning_health.catalogs.discovery import all_tables
from planning_health.cli.app import app
from planning_health.cli.options import AsJson, SettingsFile
from planning_health.cli.output import print_json, print_table, say
from planning_health.identifiers import TableName
from planning_health.settings import SettingsDocument, load_settings
from planning_health.wording import counted


@app.command("tables", rich_help_panel="Measure")
def list_tables(settings: SettingsFile = None, as_json: AsJson = False) -> None:
    """Lists all tables of the settings' catalogs: the first rule that matches each, and whether it is measured."""
    document = load_settings(settings)
    rows = [_row(document, table) for table in all_tables(document)]
    if as_json:
        print_json({"tables": rows})
        return
    if rows:
        print_table(
            ["table", "rule", "match", "measured"],
            [(row["table"], row["rule"] or "–", row["match"] or "–", row["left_out"] or "yes") for row in rows],
        )
    included = sum(row["left_out"] is None for row in rows)
    say(f"{counted(len(rows), 'table')}, {included:,} measured")


def _row(settings: SettingsDocument, table: TableName) -> dict[str, Any]:
    """A table with its rule's place in ``tables`` (from 1 on), the rule's pattern, and why it is not measured."""
    rule = settings.rule_for(table)
    return {
        "table": str(table),
        "rule": settings.tables.index(rule) + 1 if rule else None,
        "match": rule.match if rule else None,
        "left_out": settings.left_out(table),
    }
