"""Changes that the settings approve in advance, so that no person is asked; none unless the settings say so."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

from planning_health.identifiers import TableName
from planning_health.settings.models import AutoApproval


def why_to_ask(
    limits: AutoApproval | None, table: TableName, actions: Sequence[str], headline: Mapping[str, Any]
) -> str | None:
    """Why a person must approve a proposal; ``None`` when it is within the limits.

    Args:
        limits: ``maintenance.auto_approve`` of the settings.
        table: the table.
        actions: what the request asks for.
        headline: the proposal's: how many manifests and metadata bytes the table has before the change. What is not
            known is not within a limit.
    """
    if limits is None:
        return "the settings approve nothing in advance"
    if not any(fnmatchcase(table.dotted, pattern) for pattern in limits.tables):
        return f"{table} matches none of maintenance.auto_approve.tables"
    if beyond := [action for action in actions if action not in limits.actions]:
        return f"{beyond[0]} is not one of maintenance.auto_approve.actions"
    for key, name, most in (
        ("manifests_before", "most_manifests", limits.most_manifests),
        ("metadata_bytes_before", "most_metadata_bytes", limits.most_metadata_bytes),
    ):
        value = headline.get(key)
        if value is None or value > most:
            shown = "not measured" if value is None else f"{value:,}"
            return f"{key.replace('_', ' ')}: {shown}, above maintenance.auto_approve.{name} = {most:,}"
    return None
