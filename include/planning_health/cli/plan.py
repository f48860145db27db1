"""`planning-health plan`: what a scan with a predicate reads, simulated without Spark or a change to the table."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from planning_health.cli.app import app
from planning_health.cli.options import AsJson, Ref, SettingsFile, SnapshotId, TableArgument, Where
from planning_health.cli.output import console, print_json, print_table, say
from planning_health.cli.scans import read_table
from planning_health.planning.report import plan_document
from planning_health.settings import load_settings
from planning_health.wording import counted


@app.command("plan", rich_help_panel="Simulations")
def plan(
    table: TableArgument,
    where: Where = None,
    files: Annotated[bool, typer.Option("--files", help="List the matched files with their deletes.")] = False,
    snapshot_id: SnapshotId = None,
    ref: Ref = None,
    settings: SettingsFile = None,
    as_json: AsJson = False,
) -> None:
    """Simulates scan planning for each --where (without any: a full scan): manifests and files read and skipped."""
    wheres = where or ["true"]
    metadata = read_table(load_settings(settings), table, wheres, snapshot_id, ref)
    document = plan_document(metadata, wheres, files=files)
    if as_json:
        print_json(document)
        return
    say(f"{document['table']}, snapshot {document['snapshot_id']}")
    for predicate in document["predicates"]:
        _show(predicate)


def _show(predicate: dict[str, Any]) -> None:
    rows = [
        (name.replace("_", " "), *(predicate[name].get(key, "") for key in ("total", "scanned", "skipped", "result")))
        for name in ("data_manifests", "delete_manifests", "data_files")
    ]
    print_table(["", "total", "scanned", "skipped", "result"], rows, title=f"\n{predicate['where']}")
    files = predicate["data_files"]
    if rest := files["total"] - files["skipped"] - files["result"]:
        say(
            f"{counted(rest, 'data file')} in skipped manifests: Iceberg counts only files of opened manifests",
            wrap=True,
        )
    console.print(
        f"{predicate['bytes']:,} bytes in {predicate['splits']:,} splits, {predicate['tasks']:,} combined tasks; "
        f"{predicate['delete_files']['attached']:,} delete files attached",
        highlight=False,
    )
    for part in predicate["not_pushed_down"]:
        say(f"not pushed down: {part}", wrap=True)
    if "files" in predicate:
        rows = [
            (file["path"], file["bytes"], "\n".join(file["deletes"]), file["residual"]) for file in predicate["files"]
        ]
        print_table(["file", "bytes", "delete files", "residual filter"], rows)
