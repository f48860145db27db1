"""The form that starts maintenance of a table: filled in from a proposal or by a person, and what the Dag is given."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from pydantic import BaseModel, ConfigDict

from planning_health.reports.model import Proposal, TableReport
from planning_health.reports.reading import mapping, text, texts, whole

LABELS: Final = {
    "actions": "What to do",
    "spec_id": "Partition spec",
    "sort_by": "Cluster by",
    "target_manifest_bytes": "Target size of a manifest",
    "metrics_default": "Statistics of columns, default",
    "metrics_columns": "Statistics of single columns",
}
"""The form's fields, as people read them."""


class MaintenanceForm(BaseModel):
    """The form as it is filled in; an empty field leaves the table or the Dag to decide.

    Attributes:
        name: the table.
        proposal: the proposal that it was filled in from, if any.
        metrics_columns: one ``column = mode`` each; empty ones stand for columns that stay as they are.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str = ""
    proposal: str = ""
    actions: list[str] = []
    spec_id: str = ""
    sort_by: list[str] = []
    target_manifest_bytes: str = ""
    metrics_default: str = ""
    metrics_columns: list[str] = []
    dry_run: bool = True
    approval: bool = True

    @property
    def column_modes(self) -> dict[str, str]:
        """The mode asked for each column."""
        lines = (line.rpartition("=") for line in self.metrics_columns if line.strip())
        return {column.strip(): mode.strip() for column, _, mode in lines}

    @property
    def values(self) -> dict[str, Any]:
        """The fields of the Dag's form, as its ``conf``; numbers that are none stay as they were typed."""
        numbers = {"spec_id": self.spec_id, "target_manifest_bytes": self.target_manifest_bytes}
        columns = [line for line in self.metrics_columns if line.strip()]
        return {
            "table": self.name,
            "actions": self.actions,
            "dry_run": self.dry_run,
            "approval": self.approval,
            **({"sort_by": self.sort_by} if self.sort_by else {}),
            **({"metrics_columns": columns} if columns else {}),
            **({"metrics_default": self.metrics_default} if self.metrics_default else {}),
            **{name: _number(value.strip()) for name, value in numbers.items() if value.strip()},
        }


def filled_in(table: str, params: Mapping[str, Any], proposal: str = "") -> MaintenanceForm:
    """The form for a table as it opens: a dry run, after approval.

    Args:
        table: the table's name as :meth:`TableName.parse` reads it.
        params: the values of a proposal; without any, the manifests are rewritten.
        proposal: the proposal's id.
    """
    columns = mapping(params.get("metrics_columns"))
    return MaintenanceForm(
        name=table,
        proposal=proposal,
        actions=texts(params.get("actions")) or ["rewrite_manifests"],
        spec_id=text(whole(params.get("spec_id"))),
        sort_by=texts(params.get("sort_by")),
        target_manifest_bytes=text(whole(params.get("target_manifest_bytes"))),
        metrics_default=text(params.get("metrics_default")),
        metrics_columns=[f"{column} = {text(mode)}" for column, mode in columns.items()],
    )


def proposal_of(table: TableReport, proposal_id: str) -> Proposal | None:
    """The table's proposal of that id, if maintenance can run it."""
    return next((item for item in table.proposals if item.id == proposal_id and item.runnable), None)


def labelled(problem: str) -> tuple[str, str]:
    """A problem with a field by its label, and the field's name; the problem as it is where it names none."""
    field, colon, reason = problem.partition(": ")
    return (f"{LABELS[field]}: {reason}", field) if colon and field in LABELS else (problem, "")


def _number(typed: str) -> int | str:
    return int(typed) if typed.isascii() and typed.isdigit() else typed
