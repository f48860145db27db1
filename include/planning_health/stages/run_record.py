"""What a run begins with and leaves for others: its record, its settings, and the tables that forms offer."""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Final

from pydantic import ValidationError

import planning_health
from planning_health.errors import WorkFailedError, first_problem
from planning_health.identifiers import TableName
from planning_health.run_folder import RunFolder, read_bytes, write_bytes
from planning_health.settings import SettingsDocument

KNOWN_TABLES: Final = "tables.json"
"""File below home: the tables of the newest discovery, which forms offer."""


def start_run(settings: SettingsDocument, run_folder: RunFolder) -> None:
    """Writes ``run.json`` and the resolved settings (which hold references to secrets, never their values)."""
    run = {
        "dag_id": run_folder.dag_id,
        "run_id": run_folder.run_id,
        "started_at": datetime.now(UTC).isoformat(timespec="milliseconds"),
        "product_version": planning_health.__version__,
    }
    write_bytes(f"{run_folder.url}/run.json", json.dumps(run, indent=1).encode())
    write_bytes(f"{run_folder.url}/settings.json", settings.model_dump_json(indent=1).encode())


def run_settings(run_folder: RunFolder) -> SettingsDocument | None:
    """The settings that the run began with, so that all its steps agree; ``None`` before :func:`start_run`.

    Raises:
        WorkFailedError: when the file is damaged.
    """
    content = read_bytes(f"{run_folder.url}/settings.json")
    try:
        return SettingsDocument.model_validate_json(content) if content is not None else None
    except ValidationError as error:
        raise WorkFailedError(f"{run_folder.url}/settings.json cannot be read: {first_problem(error)}") from error


def remember_tables(settings: SettingsDocument, tables: Iterable[TableName]) -> None:
    """Keeps the tables of a discovery for the forms."""
    content = json.dumps([str(table) for table in tables], indent=1, ensure_ascii=False)
    write_bytes(f"{settings.home}/{KNOWN_TABLES}", content.encode())


def known_tables(settings: SettingsDocument) -> list[str]:
    """The tables that the newest discovery found, sorted; empty before the first one."""
    content = read_bytes(f"{settings.home}/{KNOWN_TABLES}")
    return sorted(json.loads(content)) if content else []
