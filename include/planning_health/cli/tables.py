"""`planning-health measure` and `diagnose`: a first look at tables; `diagnose` needs no Spark and writes nothing."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Final

import typer

from planning_health.catalogs import discover_tables
from planning_health.catalogs.existence import check_existence
from planning_health.cli.app import FindingsError, app
from planning_health.cli.diagnose import show_diagnosis
from planning_health.cli.options import (
    AsJson,
    Ref,
    SettingsFile,
    SnapshotId,
    TableArgument,
    WithSpark,
    new_run_folder,
    optional_spark,
    table_name,
)
from planning_health.cli.output import errors, print_json, print_table, say, working
from planning_health.cli.scans import read_table
from planning_health.envelope import ResultFile
from planning_health.errors import InputError, WorkFailedError
from planning_health.health.analysis import analyse
from planning_health.health.thresholds import resolve_thresholds
from planning_health.identifiers import TableName
from planning_health.settings import SettingsDocument, load_settings
from planning_health.stages.measure import measure as measure_stage
from planning_health.stages.measure import queried_columns
from planning_health.stages.run_record import start_run
from planning_health.stages.table_stage import MEASUREMENT

Tables = Annotated[
    list[str] | None, typer.Argument(metavar="[TABLE]…", help="Tables; without any: all that the settings include.")
]
LEVELS: Final = ("warning", "critical")
FailOn = Annotated[
    str | None, typer.Option("--fail-on", metavar="LEVEL", help="Exit with 3 at findings of warning or critical level.")
]


@app.command("measure", rich_help_panel="Measure")
def measure(
    tables: Tables = None, spark: WithSpark = False, settings: SettingsFile = None, as_json: AsJson = False
) -> None:
    """Records the planning metadata of tables into a run folder."""
    document = load_settings(settings)
    names = chosen_tables(document, tables)
    folder = new_run_folder(document)
    start_run(document, folder)
    with working(f"measuring {len(names)} tables"), optional_spark(document, spark) as session:
        envelope = measure_stage(document, folder, names, spark=session)
    measured = [folder.require_result(MEASUREMENT, name) for name in names]
    results = [result.envelope() for result in measured]
    if as_json:
        print_json(envelope.model_dump() | {"tables": [result.model_dump() for result in results]})
    else:
        rows = [
            (result.table, result.status, *(result.headline.get(key) for key in ("manifests", "data_file_entries")))
            for result in results
        ]
        print_table(["table", "state", "manifests", "data file entries"], rows)
        for result in results:
            if result.reason:
                say(f"{result.table}: {result.reason}", to=errors)
        say(f"recorded in {folder.url}")
    refuse_bad_input(measured)
    unmeasured = [name for name, result in zip(names, results, strict=True) if result.status != "ok"]
    if failed := [str(name) for name in unmeasured if not document.tolerates_failure(name)]:
        raise WorkFailedError(f"{len(failed)} of {len(results)} tables could not be measured: {', '.join(failed)}")


@app.command("diagnose", rich_help_panel="Measure")
def diagnose(
    table: TableArgument,
    fail_on: FailOn = None,
    snapshot_id: SnapshotId = None,
    ref: Ref = None,
    settings: SettingsFile = None,
    as_json: AsJson = False,
) -> None:
    """Reads one table's metadata and says what slows its planning; changes and writes nothing, needs no Spark."""
    if fail_on is not None and fail_on not in LEVELS:
        raise InputError(f"--fail-on {fail_on!r} is not a level: expected {' or '.join(LEVELS)}")
    document = load_settings(settings)
    name = table_name(document, table)
    thresholds = resolve_thresholds(document.rule_for(name))
    metadata = read_table(document, table, [], snapshot_id, ref)
    found = analyse(metadata, thresholds, filter_columns=queried_columns(document, name))
    if as_json:
        print_json({"table": str(name), "snapshot_id": metadata.info.snapshot_id, **found})
    else:
        show_diagnosis(metadata.info, found, thresholds)
    if fail_on and any(LEVELS.index(item["level"]) >= LEVELS.index(fail_on) for item in found["findings"]):
        raise FindingsError(f"{name} has findings at or above {fail_on}")


def chosen_tables(settings: SettingsDocument, given: list[str] | None) -> list[TableName]:
    """The tables of the command line, each once, else all that the settings include.

    Raises:
        InputError: for a malformed or unknown name, an unreachable catalog, or when no table is left.
    """
    if given:
        named = list(dict.fromkeys(table_name(settings, text) for text in given))
        check_existence(settings, named)
        return named
    names = discover_tables(settings)
    if not names:
        patterns = [rule.match for rule in settings.tables]
        raise InputError(f"no table matches the settings' patterns {patterns}: `planning-health tables` lists them all")
    return names


def refuse_bad_input(measured: Iterable[ResultFile]) -> None:
    """Refuses to go on with tables that only the measurement could tell to be bad input.

    Raises:
        InputError: naming each with the reason.
    """
    if bad := [str(result.reason) for result in measured if (result.data or {}).get("bad_input")]:
        raise InputError("; ".join(bad))
