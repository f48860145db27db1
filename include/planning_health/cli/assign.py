"""`planning-health assign`: task counts, balancing and affinity, from numbers, from hints, or for a table's scan."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from planning_health.assignment import UnitTable, calculator, default_assignment
from planning_health.cli.app import app
from planning_health.cli.documents import parse_json
from planning_health.cli.options import AsJson, Ref, SettingsFile, SnapshotId, Where, needed
from planning_health.cli.output import console, plain, print_json, print_table
from planning_health.cli.scans import units_of_table
from planning_health.errors import InputError


class Strategy(StrEnum):
    """How work is placed."""

    default = "default"
    greedy = "greedy"
    affinity = "affinity"


@app.command("assign", rich_help_panel="Simulations")
def assign(
    table: Annotated[
        str | None, typer.Argument(metavar="[TABLE]", help="Assign the files of this table's scan.")
    ] = None,
    costs: Annotated[str | None, typer.Option(help="Costs of the work units, for example 100,1,2,3.")] = None,
    hints: Annotated[Path | None, typer.Option(help='JSON: [{"task": id, "hints": [[key, weight], …]}, …].')] = None,
    workers: Annotated[str | None, typer.Option(help="Worker URLs, separated by commas.")] = None,
    tasks: Annotated[int | None, typer.Option(help="Number of tasks.")] = None,
    strategy: Annotated[Strategy, typer.Option(help="How work is placed.")] = Strategy.default,
    partitions: Annotated[int, typer.Option(help="Local partitions of a task.")] = 1,
    estimate: Annotated[bool, typer.Option("--estimate", help="Only estimate the number of tasks.")] = False,
    total_bytes: Annotated[int | None, typer.Option("--bytes", help="Bytes of the scan, for --estimate.")] = None,
    bytes_per_partition: Annotated[int, typer.Option(help="Bytes of one partition, for --estimate.")] = 16 * 2**20,
    files: Annotated[int | None, typer.Option(help="Files of the scan, for --estimate.")] = None,
    max_tasks: Annotated[int | None, typer.Option(help="Most tasks, for --estimate.")] = None,
    where: Where = None,
    snapshot_id: SnapshotId = None,
    ref: Ref = None,
    settings: SettingsFile = None,
    as_json: AsJson = False,
) -> None:
    """Shows how a scan's work spreads over tasks and workers.

    Give one of TABLE (with --where), --costs, --hints (with --workers) or --estimate.
    """
    if estimate:
        document: dict[str, Any] = calculator.estimate(
            needed(total_bytes, "--bytes"),
            partitions,
            needed(files, "--files"),
            needed(max_tasks, "--max-tasks"),
            bytes_per_partition,
        )
    elif costs is not None:
        numbers = calculator.parse_integers(costs, "--costs")
        document = calculator.assign_costs(numbers, needed(tasks, "--tasks"), strategy.value, partitions)
    elif hints is not None:
        document = calculator.assign_affinity(_read_json(hints), _urls(workers))
    else:
        name = needed(table, "one of TABLE, --costs, --hints or --estimate")
        if strategy is Strategy.affinity:
            urls = _urls(workers)
            count = len(urls) if tasks is None else tasks
            calculator.check_size(count, len(urls), "workers")
            units = units_of_table(name, where, snapshot_id, ref, settings)
            document = calculator.assign_affinity(_hints(units, count), urls)
        else:
            count = needed(tasks, "--tasks")
            calculator.check_size(count, partitions)
            units = units_of_table(name, where, snapshot_id, ref, settings)
            document = calculator.assign_costs(units.costs.tolist(), count, strategy.value, partitions)
    if as_json:
        print_json(document)
    else:
        _show(document)


def _urls(workers: str | None) -> list[str]:
    urls = [worker.strip() for worker in (workers or "").split(",") if worker.strip()]
    return needed(urls or None, "--workers")


def _hints(units: UnitTable, tasks: int) -> list[dict[str, Any]]:
    """What each task of a default assignment reads, as a hints document."""
    placed = default_assignment(units.costs, tasks)
    paths, lengths = units.paths.to_pylist(), units.lengths.tolist()
    return [
        {"task": task, "hints": [[paths[unit], lengths[unit]] for unit in group]}
        for task, group in enumerate(placed.groups)
    ]


def _read_json(path: Path) -> Any:
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise InputError(f"file {str(path)!r} cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise InputError(f"file {str(path)!r} is not text: {error}") from error
    return parse_json(text, f"file {str(path)!r}")


def _show(document: dict[str, Any]) -> None:
    if "loads" in document:
        loads = document["loads"]
        print_table(["task", "load"], enumerate(loads))
        bound, skew = document["lower_bound"], document["skew"]
        console.print(
            f"makespan {document['makespan']:,}, lower bound {bound:,}, skew {'-' if skew is None else f'{skew:.3f}'}"
        )
    elif "preferred" in document:
        print_table(["worker", "preferred tasks"], document["preferred"].items())
    else:
        console.print(f"{document['tasks']} tasks")
    for limit in document.get("limits", ()):
        console.print(f"[dim]{plain(limit)}[/]")
