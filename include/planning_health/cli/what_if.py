"""`planning-health what-if`: what other manifests, statistics or another partition spec would make queries read."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from pydantic import ValidationError

from planning_health.cli.app import app
from planning_health.cli.options import (
    AsJson,
    Ref,
    SettingsFile,
    SnapshotId,
    TableArgument,
    Where,
    metrics_modes,
)
from planning_health.cli.output import errors, print_json, print_table, say
from planning_health.cli.scans import read_table
from planning_health.errors import InputError, first_problem
from planning_health.planning.scan import ScanPlanner
from planning_health.settings import Query, load_settings
from planning_health.stages.queries import queries_of
from planning_health.stages.what_if import WhatIfRequest, what_if_document


@app.command("what-if", rich_help_panel="Simulations")
def what_if(
    table: TableArgument,
    where: Where = None,
    spec: Annotated[
        str | None, typer.Option(metavar="FIELDS", help="Another partition spec: 'days(ts), bucket(16, id)'.")
    ] = None,
    metrics: Annotated[
        list[str] | None,
        typer.Option(metavar="KEY=MODE", help="Fewer statistics: default=MODE or column.NAME=MODE; repeat."),
    ] = None,
    target_manifest_bytes: Annotated[int | None, typer.Option(help="The size of rewritten manifests.")] = None,
    sort_by: Annotated[list[str] | None, typer.Option(help="Partition field to cluster by; repeat in order.")] = None,
    snapshot_id: SnapshotId = None,
    ref: Ref = None,
    settings: SettingsFile = None,
    as_json: AsJson = False,
) -> None:
    """Predicts what queries would read after a rewrite of manifests, and with other statistics or partitions.

    Without --where: the table's configured queries, else those that its partitioning invites.
    """
    default, columns = metrics_modes("--metrics", metrics or [])
    try:
        request = WhatIfRequest(
            spec=spec,
            metrics_default=default,
            metrics_columns=columns,
            target_manifest_bytes=target_manifest_bytes,
            sort_by=sort_by or [],
        )
    except ValidationError as error:
        raise InputError(first_problem(error)) from error
    document = load_settings(settings)
    metadata = read_table(document, table, where or [], snapshot_id, ref, columns=request.spec_columns)
    queries = [Query(name=text, where=text) for text in where or ()]
    if not queries:
        configured = queries_of(document, metadata.info.name, ScanPlanner(metadata))
        queries = configured.planned
        for query in configured.not_planned:
            say(f"query {query.name!r} is not planned: {query.reason}", to=errors, wrap=True)
    found = what_if_document(metadata, queries, request)
    if as_json:
        print_json({"table": str(metadata.info.name), "snapshot_id": metadata.info.snapshot_id, **found})
        return
    say(f"{metadata.info.name}, snapshot {metadata.info.snapshot_id}")
    if found["reason"]:
        say(found["reason"], wrap=True)
    for alternative in found["alternatives"]:
        _show(alternative)


def _show(alternative: dict[str, Any]) -> None:
    whole = alternative["table"]
    rows = [
        ("the whole table", *_sides(whole["before"], whole["after"])),
        *((item["where"], *_sides(item["before"], item["after"])) for item in alternative["predicates"]),
    ]
    print_table(["predicate", "manifests", "data files", "metadata bytes"], rows, title=f"\n{alternative['title']}")
    for note in alternative["notes"]:
        say(note, wrap=True)


def _sides(before: dict[str, int], after: dict[str, int]) -> list[str]:
    manifests = [side["data_manifests"] + side["delete_manifests"] for side in (before, after)]
    return [
        f"{earlier:,} → {later:,}"
        for earlier, later in (
            manifests,
            (before["data_files"], after["data_files"]),
            (before["metadata_bytes"], after["metadata_bytes"]),
        )
    ]
