"""Step: which tables this run is about; also starts the run's folder."""

from __future__ import annotations

from planning_health.catalogs import discover_tables
from planning_health.envelope import Envelope
from planning_health.run_folder import RunFolder
from planning_health.settings import SettingsDocument
from planning_health.stages.run_record import remember_tables, start_run

KIND = "discovery"


def discover(settings: SettingsDocument, run_folder: RunFolder) -> Envelope:
    """Lists the tables that the settings' patterns include.

    Raises:
        InputError: when a catalog cannot be reached.
    """
    start_run(settings, run_folder)
    tables = discover_tables(settings)
    remember_tables(settings, tables)
    return run_folder.write_result(
        KIND, headline={"tables": len(tables)}, data={"tables": [str(table) for table in tables]}
    )
