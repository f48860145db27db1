"""Step: notes that a person did not approve the proposal, so that reports say why the table is unchanged."""

from __future__ import annotations

from planning_health.envelope import Envelope
from planning_health.identifiers import TableName
from planning_health.run_folder import RunFolder
from planning_health.settings import SettingsDocument
from planning_health.wording import span

KIND = "action"


def refuse(settings: SettingsDocument, run_folder: RunFolder, table: TableName, *, by: str | None) -> Envelope:
    """Writes the table's ``action`` result: state ``refused``, nothing was done.

    Args:
        settings: say how long an answer was waited for.
        run_folder: the run's folder.
        table: the table.
        by: who rejected the proposal; ``None`` when nobody answered in time.
    """
    waited = span(settings.maintenance.approval_timeout)
    reason = f"{by} rejected the proposal" if by else f"nobody approved the proposal within {waited}"
    return run_folder.write_result(
        KIND,
        table=table,
        status="skipped",
        reason=reason,
        data={"dry_run": False, "state": "refused", "steps": []},
    )
