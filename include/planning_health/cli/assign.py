"""`planning-health assign`: task counts, balancing and affinity, from numbers, from hints, or for a table's scan."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from planning_health.assignment import UnitTable, calculator, default_units
from planning_health.assignment.limits import BYTES_ARE_AN_ESTIMATE
from planning_health.cli.app import app
from planning_health.cli.documents import parse_json
from planning_health.cli.options import AsJson, Ref, SettingsFile, SnapshotId, Where, needed
from planning_health.cli.output import console, plain, print_json, print_table
from planning_health.cli.scans import units_of_table
from planning_health.errors import InputError
from planning_health.settings import SettingsDocument, load_settings


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
    hints: Annotated[
        Path | None, typer.Option(help='JSON: \\[{"task": id, "hints": \\[\\[key, weight], …]}, …].')
    ] = None,
    workers: Annotated[
        str | None,
        typer.Option(
            help="Worker URLs, separated by commas, for affinity. Default for a TABLE: worker-0, worker-1, … of "
            "assignment.workers in the settings (4)."
        ),
    ] = None,
    tasks: Annotated[
        int | None,
        typer.Option(
            help="Number of tasks. Default for a TABLE: assignment.tasks of the settings, else one for each worker."
        ),
    ] = None,
    strategy: Annotated[
        Strategy | None,
        typer.Option(
            help="How work is placed. Default for a TABLE: assignment.strategy of the settings; else default."
        ),
    ] = None,
    partitions: Annotated[
        int | None,
        typer.Option(
            help="Local partitions of a task. Default for a TABLE: assignment.partitions_per_task of the settings (2); "
            "else 1."
        ),
    ] = None,
    list_files: Annotated[
        bool, typer.Option("--list-files", help="List the files that each task of a TABLE's scan reads.")
    ] = False,
    estimate: Annotated[bool, typer.Option("--estimate", help="Only estimate the number of tasks.")] = False,
    total_bytes: Annotated[int | None, typer.Option("--bytes", help="Bytes of the scan, for --estimate.")] = None,
    bytes_per_partition: Annotated[int, typer.Option(help="Bytes of one partition, for --estimate.")] = 16 * 2**20,
    files: Annotated[int | None, typer.Option(help="Number of files of the scan, for --estimate.")] = None,
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
            1 if partitions is None else partitions,
            needed(files, "--files"),
            needed(max_tasks, "--max-tasks"),
            bytes_per_partition,
        )
    elif costs is not None:
        numbers = calculator.parse_integers(costs, "--costs")
        document = calculator.assign_costs(
            numbers, needed(tasks, "--tasks"), strategy or Strategy.default, 1 if partitions is None else partitions
        )
    elif hints is not None:
        document = calculator.assign_affinity(_read_json(hints), _urls(workers))
    else:
        name = needed(table, "one of TABLE, --costs, --hints or --estimate")
        loaded = load_settings(settings)
        scan = _Scan(loaded, name, where, snapshot_id, ref, tasks)
        if (strategy or loaded.assignment.strategy) == Strategy.affinity:
            document = scan.route(_urls(workers) if workers is not None else _model_urls(loaded.assignment.workers))
        else:
            document = scan.balance(strategy or loaded.assignment.strategy, partitions)
    if as_json:
        print_json(document)
    else:
        _show(document, list_files=list_files)


@dataclass(frozen=True)
class _Scan:
    """The scan of a table whose files are assigned."""

    settings: SettingsDocument
    table: str
    where: list[str] | None
    snapshot_id: int | None
    ref: str | None
    tasks: int | None

    def balance(self, strategy: str, partitions: int | None) -> dict[str, Any]:
        """The files on tasks."""
        model = self.settings.assignment
        tasks = self._tasks(model.workers)
        each = model.partitions_per_task if partitions is None else partitions
        calculator.check_size(tasks, each)
        return calculator.assign_units(self._units(), tasks, strategy, each)

    def route(self, urls: list[str]) -> dict[str, Any]:
        """The tasks of a default assignment on workers."""
        tasks = self._tasks(len(urls))
        calculator.check_size(tasks, len(urls), "workers")
        units = self._units()
        groups = default_units(units, tasks).groups
        files, lengths = units.paths.to_pylist(), units.lengths.tolist()
        hints = [
            {"task": task, "hints": [[files[unit], lengths[unit]] for unit in group]}
            for task, group in enumerate(groups)
        ]
        return {**calculator.assign_affinity(hints, urls), "assignment": list(groups), "files": files}

    def _tasks(self, workers: int) -> int:
        configured = self.settings.assignment.tasks or workers
        return configured if self.tasks is None else self.tasks

    def _units(self) -> UnitTable:
        return units_of_table(self.settings, self.table, self.where, self.snapshot_id, self.ref)


def _model_urls(workers: int) -> list[str]:
    return [f"http://worker-{number}/" for number in range(workers)]


def _urls(workers: str | None) -> list[str]:
    urls = [worker.strip() for worker in (workers or "").split(",") if worker.strip()]
    return needed(urls or None, "--workers")


def _read_json(path: Path) -> Any:
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise InputError(f"file {str(path)!r} cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise InputError(f"file {str(path)!r} is not text: {error}") from error
    return parse_json(text, f"file {str(path)!r}")


def _show(document: dict[str, Any], *, list_files: bool) -> None:
    if list_files:
        needed(document.get("files"), "TABLE, whose files --list-files lists,")
    if "loads" in document:
        _show_loads(document)
    elif "preferred" in document:
        print_table(["worker", "preferred tasks"], document["preferred"].items())
    else:
        console.print(f"{document['tasks']} tasks")
    if list_files:
        print_table(["task", "worker", "file"] if "preferred" in document else ["task", "file"], _files(document))
    for limit in document.get("limits", [BYTES_ARE_AN_ESTIMATE]):
        console.print(f"[dim]{plain(limit)}[/]")


def _show_loads(document: dict[str, Any]) -> None:
    groups, loads = document["assignment"], document["loads"]
    each = len(groups) // len(loads)
    counts = [sum(map(len, groups[task * each : (task + 1) * each])) for task in range(len(loads))]
    print_table(["task", "load", "units"], zip(range(len(loads)), loads, counts, strict=True))
    bound, skew = document["lower_bound"], document["skew"]
    console.print(
        f"makespan {document['makespan']:,}, lower bound {bound:,}, skew {'-' if skew is None else f'{skew:.3f}'}"
    )


def _files(document: dict[str, Any]) -> Iterator[tuple[Any, ...]]:
    """Task, the worker that it prefers where it was routed, and file."""
    workers = [task["ranking"][0]["worker"] if task["ranking"] else "any" for task in document.get("tasks", ())]
    each = len(document["assignment"]) // len(document["loads"]) if "loads" in document else 1
    for feed, units in enumerate(document["assignment"]):
        task = feed // each
        yield from ((task, *workers[task : task + 1], document["files"][unit]) for unit in units)
