"""Step: which tables this run is about; also starts the run's folder."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import planning_health
from planning_health.catalogs import discover_tables
from planning_health.envelope import Envelope
from planning_health.run_folder import RunFolder, read_bytes, write_bytes
from planning_health.settings import SettingsDocument

KIND = "discovery"
KNOWN_TABLES = "tables.json"
"""File below home: the tables of the newest discovery, which forms offer."""


def discover(settings: SettingsDocument, run_folder: RunFolder) -> Envelope:
    """Lists the tables that the settings' patterns include.

    Raises:
        InputError: when a catalog cannot be reached.
    """
    start_run(settings, run_folder)
    tables = discover_tables(settings)
    write_bytes(f"{settings.home}/{KNOWN_TABLES}", json.dumps([str(table) for table in tables], indent=1).encode())
    return run_folder.write_result(
        KIND, headline={"tables": len(tables)}, data={"tables": [str(table) for table in tables]}
    )


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
    """The settings that the run began with, so that all its steps agree; ``None`` before :func:`start_run`."""
    content = read_bytes(f"{run_folder.url}/settings.json")
    return SettingsDocument.model_validate_json(content) if content else None


def known_tables(settings: SettingsDocument) -> list[str]:
    """The tables that the newest discovery found, sorted; empty before the first one."""
    content = read_bytes(f"{settings.home}/{KNOWN_TABLES}")
    return sorted(json.loads(content)) if content else []
