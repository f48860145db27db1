"""`planning-health advise-metrics` and `advise-layout`: what the observed queries need of a table's metadata."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import typer

from planning_health.advice.observed import Observation, observed_columns
from planning_health.cli.app import app
from planning_health.cli.options import AsJson, SettingsFile, TableArgument, table_name
from planning_health.cli.output import print_json, print_table, say
from planning_health.cli.scans import read_table
from planning_health.metadata import PlanningMetadata
from planning_health.reports.command_line import maintain_command, what_apply_needs
from planning_health.settings import Query, SettingsDocument, load_settings, settings_to_name
from planning_health.stages.advise_layout import layout_document
from planning_health.stages.advise_metrics import metrics_document
from planning_health.stages.observed_workload import observations
from planning_health.stages.queries import configured_queries

EventLogs = Annotated[
    list[str] | None,
    typer.Option("--event-log", metavar="PATH", help="Spark event log: a file or a folder of them; repeat."),
]
ScanReports = Annotated[
    list[str] | None,
    typer.Option("--scan-reports", metavar="PATH", help="Iceberg ScanReports, one JSON document a line; repeat."),
]


@app.command("advise-metrics", rich_help_panel="Repair")
def advise_metrics(
    table: TableArgument,
    event_log: EventLogs = None,
    scan_reports: ScanReports = None,
    budget: Annotated[int, typer.Option(min=0, help="How many more files each observed query may read.")] = 0,
    settings: SettingsFile = None,
    as_json: AsJson = False,
) -> None:
    """Advises which column statistics to keep, from the observed queries and what each column's statistics cost."""
    document = load_settings(settings)
    metadata, observed, queries = _observed(document, table, event_log or (), scan_reports or ())
    advice = metrics_document(metadata, observed, queries, budget=budget)
    if as_json:
        _print_json(metadata, advice)
        return
    _show(metadata, advice)
    if advice["params"]:
        params = advice["params"] | {"actions": ["set_properties", "trim_statistics"]}
        say("\nset them, trim existing entries, too, and have it checked (without --apply: see what would change).")
        say(f"{what_apply_needs(document, metadata.info.name.catalog)}:")
        say(maintain_command(str(metadata.info.name), params, settings_to_name(settings)))


@app.command("advise-layout", rich_help_panel="Repair")
def advise_layout(
    table: TableArgument,
    event_log: EventLogs = None,
    scan_reports: ScanReports = None,
    threads: Annotated[
        int | None,
        typer.Option(min=1, help="Threads of Iceberg's worker pool where queries are planned; default: as here."),
    ] = None,
    settings: SettingsFile = None,
    as_json: AsJson = False,
) -> None:
    """Advises which manifest size and sort order plan the observed queries fastest, by predicting each candidate."""
    document = load_settings(settings)
    metadata, observed, queries = _observed(document, table, event_log or (), scan_reports or ())
    advice = layout_document(metadata, observed, queries, threads=threads)
    if as_json:
        _print_json(metadata, advice)
        return
    _say_workload(metadata, advice)
    if advice["candidates"]:
        rows = [_layout_row(layout, advice) for layout in [advice["now"], *advice["candidates"]]]
        print_table(["manifests aim at", "clustered by", "manifests", "opened", "planning ms"], rows, title="\nLayouts")
    say(advice["why"], wrap=True)
    for command in advice["commands"]:
        say(command)


def _observed(
    document: SettingsDocument, table: str, event_logs: Sequence[str], scan_reports: Sequence[str]
) -> tuple[PlanningMetadata, list[Observation], list[Query]]:
    """The table with the columns that were observed, what was observed, and the table's configured queries."""
    name = table_name(document, table)
    observed = observations(document, event_logs, scan_reports)
    metadata = read_table(document, table, [], columns=observed_columns(name, observed))
    return metadata, observed, configured_queries(document, name)


def _print_json(metadata: PlanningMetadata, advice: dict[str, Any]) -> None:
    print_json({"table": str(metadata.info.name), "snapshot_id": metadata.info.snapshot_id, **advice})


def _say_workload(metadata: PlanningMetadata, advice: dict[str, Any]) -> None:
    scans, filters = advice["workload"]["scans"], advice["workload"]["filters"]
    say(f"{metadata.info.name}: {scans:,.0f} observed scans with {filters:,} distinct filters")


def _layout_row(layout: dict[str, Any], advice: dict[str, Any]) -> list[Any]:
    mark = " (now)" if layout is advice["now"] else " (advised)" if layout == advice["advised"] else ""
    order = ", ".join(layout["sort_by"]) or "the spec's order"
    return [
        f"{layout['target_bytes']:,}{mark}",
        "as it is" if layout is advice["now"] else order,
        layout["manifests"],
        layout["opened"],
        layout["planning_ms"],
    ]


def _show(metadata: PlanningMetadata, advice: dict[str, Any]) -> None:
    _say_workload(metadata, advice)
    kept = [column for column in advice["columns"] if column["mode"] != "none"]
    if kept:
        print_table(
            ["column", "mode", "now", "bytes", "scans", "files read", "without it"],
            [_row(column) for column in kept],
            title="\nStatistics to keep",
        )
        for column in kept:
            say(f"{column['column']}: {column['why']}", wrap=True)
    dropped = [column for column in advice["columns"] if column["mode"] == "none"]
    if dropped:
        size = sum(column["statistics_bytes"] for column in dropped)
        say(f"none for the other {len(dropped)} columns, whose statistics take {size:,} bytes", wrap=True)
    if advice["columns"]:
        before, after = advice["metadata_bytes_before"], advice["metadata_bytes_after"]
        say(f"manifests: {before:,} bytes, {after:,} once existing entries are trimmed, too")
    more = [query for query in advice["queries"] if query["files_after"] > query["files_before"]]
    if more:
        rows = [(query["name"], query["weight"], query["files_before"], query["files_after"]) for query in more]
        print_table(["query", "scans", "files now", "files then"], rows, title="\nQueries that would read more files")
    for line in filter(None, [advice["reason"], *advice["notes"]]):
        say(line, wrap=True)
    for title, commands in (("set it with:", advice["commands"]), ("undo it with:", advice["undo"])):
        for command in commands:
            say(f"{title} {command}")


def _row(column: dict[str, Any]) -> list[Any]:
    pruning = column["pruning"]
    files = (pruning["files"], pruning["files_without"]) if pruning else ("", "")
    return [*(column[key] for key in ("column", "mode", "today", "statistics_bytes", "scans")), *files]
