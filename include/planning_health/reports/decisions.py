"""How the proposals of a report are decided: by which command or form, and whether a person is asked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from planning_health.identifiers import TableName
from planning_health.maintenance.auto_approval import why_to_ask
from planning_health.reports.command_line import maintain_command, what_apply_needs
from planning_health.reports.model import APPLY, Report
from planning_health.reports.reading import texts
from planning_health.run_folder import CLI_DAG_ID
from planning_health.settings.models import MaintenanceSettings, SettingsDocument


@dataclass(frozen=True)
class Decisions:
    """Where a report's reader decides.

    Attributes:
        airflow_url: address of the Airflow UI, which has the maintenance form; ``None`` where it is not known.
        settings_file: what commands name with ``--settings``; ``None`` where they find the settings without.
        maintenance: how the settings have maintenance approved in Airflow; ``None`` where nobody asks: on the command
            line, whoever adds ``--apply`` has decided.
        settings: the settings, which say of what types the catalogs are; ``None`` where they are not known.
    """

    airflow_url: str | None = None
    settings_file: str | None = None
    maintenance: MaintenanceSettings | None = None
    settings: SettingsDocument | None = None

    def command(self, table: str, params: Mapping[str, Any]) -> str:
        """The complete shell command of a proposal; empty for one that the product only recommends."""
        return maintain_command(table, params, self.settings_file)

    def needs(self, table: TableName, params: Mapping[str, Any]) -> str:
        """What must be there before the command can change the table; empty for what is only recommended."""
        if self.settings is None or not texts(params.get("actions")):
            return ""
        return what_apply_needs(self.settings, table.catalog)

    def approval(self, table: TableName, params: Mapping[str, Any], headline: Mapping[str, Any]) -> str:
        """Whether a person approves a proposal before it is carried out; empty where that goes without saying."""
        actions = texts(params.get("actions"))
        if self.maintenance is None or not actions:
            return ""
        if self.maintenance.approval == "off":
            return "Nobody is asked for approval: the settings have switched it off (maintenance.approval)"
        if self.maintenance.auto_approve is None:
            return ""
        why = why_to_ask(self.maintenance.auto_approve, table, actions, headline)
        return f"A person is asked for approval: {why}" if why else "Approved in advance by maintenance.auto_approve"


def how_to_decide(report: Report) -> str:
    """How the proposals of a report are decided, in words; they wait until then."""
    in_form = ""
    if report.airflow_url:
        in_form = " Its link leads to the form in Airflow, filled in; there, too, a dry run is the default."
    elif report.dag_id != CLI_DAG_ID:
        in_form = " In Airflow, the form of the Dag table_maintenance does the same."
    needs = "".join(f" {text}." for text in dict.fromkeys(step.needs for _, step in report.next_steps) if text)
    return (
        "Each repair below waits for a decision. Its command shows what would change, and changes nothing; with "
        f"{APPLY} at its end it makes the repair and checks it.{needs}{in_form}"
    )
