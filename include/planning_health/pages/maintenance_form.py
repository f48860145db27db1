"""A proposal as the values of the form of the Dag ``table_maintenance``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from planning_health.reports.model import Proposal, TableReport
from planning_health.reports.reading import mapping, text, texts, whole

FIELDS: Final = ("spec_id", "target_manifest_bytes", "metrics_default")


def proposal_of(table: TableReport, proposal_id: str) -> Proposal | None:
    """The table's proposal of that id, if maintenance can run it."""
    return next((item for item in table.proposals if item.id == proposal_id and item.runnable), None)


def form_values(table: str, params: Mapping[str, Any], *, dry_run: bool, approval: bool) -> dict[str, Any]:
    """The fields of the form, as the Dag's ``conf``.

    Args:
        table: the table's name as :meth:`TableName.parse` reads it.
        params: the proposal's values.
        dry_run: show the changes only.
        approval: ask a person before acting.
    """
    given = {name: params[name] for name in FIELDS if params.get(name) is not None}
    columns = [f"{column} = {text(mode)}" for column, mode in mapping(params.get("metrics_columns")).items()]
    return {
        "table": table,
        "actions": texts(params.get("actions")),
        "dry_run": dry_run,
        "approval": approval,
        **({"sort_by": texts(params.get("sort_by"))} if params.get("sort_by") else {}),
        **({"metrics_columns": columns} if columns else {}),
        **{name: value if name == "metrics_default" else whole(value) for name, value in given.items()},
    }
