"""`planning-health verify` and `rollback`: is nothing lost, and how to go back."""

from __future__ import annotations

from typing import Annotated

import typer

from planning_health.catalogs import require_spark_catalog
from planning_health.cli.app import app
from planning_health.cli.options import (
    AsJson,
    SettingsFile,
    TableArgument,
    WithSpark,
    new_run_folder,
    optional_spark,
    table_name,
)
from planning_health.cli.output import print_json, print_table, say, working
from planning_health.errors import InputError, WorkFailedError
from planning_health.metadata import SnapshotChoice
from planning_health.run_folder import CLI_DAG_ID, RunFolder
from planning_health.settings import SettingsDocument, load_settings
from planning_health.stages.rollback import rollback as rollback_stage
from planning_health.stages.rollback import tables_to_undo
from planning_health.stages.run_record import run_settings, start_run
from planning_health.stages.verify import verify as verify_stage

MAINTENANCE_DAG_ID = "table_maintenance"


@app.command("verify", rich_help_panel="Repair")
def verify(
    table: TableArgument,
    against: Annotated[
        str | None,
        typer.Option(
            metavar="SNAPSHOT",
            help="The earlier snapshot's id, or a branch or tag; default: the current snapshot's parent.",
        ),
    ] = None,
    spark: WithSpark = False,
    settings: SettingsFile = None,
    as_json: AsJson = False,
) -> None:
    """Compares the table's current snapshot with an earlier one: files, rows, deletes, sequence numbers.

    What commits in between added and removed is told with its snapshot; any other difference fails.
    """
    document = load_settings(settings)
    name = table_name(document, table)
    if spark:
        require_spark_catalog(document, name.catalog)
    folder = new_run_folder(document)
    start_run(document, folder)
    with working(f"comparing snapshots of {name}"), optional_spark(document, spark) as session:
        envelope = verify_stage(document, folder, name, _earlier(against), spark=session)
    result = folder.require_result(envelope.kind, name)
    if as_json:
        print_json(result.model_dump())
    else:
        rows = [
            (check["name"], "ok" if check["success"] else "failed", str(check["observed"]), str(check["expected"]))
            for check in result.data["checks"]
        ]
        say(f"{name}: snapshot {result.snapshot_id}, compared with {result.data['against']}")
        print_table(["check", "state", "observed", "expected"], rows)
    if envelope.status != "ok":
        earlier = result.data["against"]
        failed, checks = (envelope.headline[key] for key in ("checks_failed", "checks"))
        raise WorkFailedError(f"{name} does not hold what snapshot {earlier} held: {failed} of {checks} checks failed")


@app.command("rollback", rich_help_panel="Repair")
def rollback(
    run: Annotated[str, typer.Argument(metavar="RUN", help="Run id of the maintenance to undo.")],
    settings: SettingsFile = None,
    as_json: AsJson = False,
) -> None:
    """Undoes a maintenance run (snapshot and properties), while nobody has changed the table since."""
    document = load_settings(settings)
    folder = _maintenance_run(document, run)
    tables = tables_to_undo(folder)
    if not tables:
        raise InputError(f"run {run!r} changed no table (it was a dry run, or proposed nothing): nothing to undo")
    for table in tables:
        require_spark_catalog(document, table.catalog)
    with working(f"rolling {run} back"), optional_spark(document, True) as session:
        assert session is not None  # noqa: S101 - asked for
        envelopes = [rollback_stage(document, folder, table, session) for table in tables]
    if as_json:
        print_json([envelope.model_dump() for envelope in envelopes])
    else:
        rows = [(item.table, item.status, item.reason or f"snapshot {item.snapshot_id}") for item in envelopes]
        print_table(["table", "state", "now"], rows)
    if failed := [f"{item.table}: {item.reason}" for item in envelopes if item.status == "failed"]:
        raise WorkFailedError("; ".join(failed))


def _earlier(against: str | None) -> SnapshotChoice | None:
    """The snapshot by its id, or by a branch or tag; ``None`` for the current one's parent."""
    if against is None:
        return None
    number = against.isascii() and against.isdigit()
    return SnapshotChoice(snapshot_id=int(against)) if number else SnapshotChoice(ref=against)


def _maintenance_run(settings: SettingsDocument, run: str) -> RunFolder:
    for dag_id in (CLI_DAG_ID, MAINTENANCE_DAG_ID):
        folder = RunFolder(settings.home, dag_id, run)
        if run_settings(folder) is not None:
            return folder
    raise InputError(f"run {run!r} is not known below {settings.home}/runs: expected the run id of a maintenance run")
