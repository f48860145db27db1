"""`planning-health plan-tasks`: batches, tokens and the load on a planning server."""

from __future__ import annotations

import sys
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from planning_health.cli.app import app
from planning_health.cli.documents import parse_json
from planning_health.cli.options import AsJson, Ref, SettingsFile, SnapshotId, TableArgument, Where
from planning_health.cli.output import console, print_json, print_table
from planning_health.cli.scans import units_of_table
from planning_health.errors import InputError
from planning_health.plan_tasks import calculator
from planning_health.settings import load_settings

BatchSize = Annotated[int, typer.Option(help="Tasks of one response; 0 for all in one.")]
Replicas = Annotated[int, typer.Option(help="Server processes.")]


class _TableOrCommand(TyperGroup):
    """A group that also takes a table's name, before or after options: the command ``table`` may be left out."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        for word in args:
            if word in self.commands:
                break
            if "." in word and not word.startswith("-"):
                args = ["table", *args]
                break
        return super().parse_args(ctx, args)


plan_tasks = typer.Typer(
    cls=_TableOrCommand,
    subcommand_metavar="[TABLE | COMMAND] [ARGS]...",
)
app.add_typer(plan_tasks, name="plan-tasks", rich_help_panel="Simulations")


@plan_tasks.callback(invoke_without_command=True)
def batches(
    context: typer.Context,
    tasks: Annotated[int | None, typer.Option(help="File scan tasks of the plan.")] = None,
    batch_size: BatchSize = 100,
    replicas: Replicas = 3,
    as_json: AsJson = False,
) -> None:
    """Batches, tokens and the load on a planning server.

    Give --tasks N for a plan of that many tasks; or a TABLE (catalog.namespace.table) for that table's scan, with the
    options that "plan-tasks table --help" lists; or one of the commands below.
    """
    if context.invoked_subcommand is not None:
        return
    if tasks is None:
        raise InputError("--tasks is missing: expected the number of file scan tasks, a TABLE or a sub-command")
    _print(calculator.batching(tasks, batch_size, replicas), as_json)


@plan_tasks.command("table")
def table_batches(
    table: TableArgument,
    where: Where = None,
    batch_size: Annotated[
        int | None,
        typer.Option(
            help="Tasks of one response, 0 for all in one. Default: plan_tasks.batch_size of the settings (100)."
        ),
    ] = None,
    replicas: Annotated[
        int | None, typer.Option(help="Server processes. Default: plan_tasks.replicas of the settings (3).")
    ] = None,
    snapshot_id: SnapshotId = None,
    ref: Ref = None,
    settings: SettingsFile = None,
    as_json: AsJson = False,
) -> None:
    """How the plan of a TABLE's scan is delivered; the word "table" may be left out."""
    loaded = load_settings(settings)
    model = loaded.plan_tasks
    units = units_of_table(loaded, table, where, snapshot_id, ref)
    document = calculator.batching(
        len(units),
        model.batch_size if batch_size is None else batch_size,
        model.replicas if replicas is None else replicas,
    )
    _print(document, as_json)


@plan_tasks.command("encode")
def encode() -> None:
    """Reads a token's payload as JSON from standard input and prints the token."""
    try:
        text = sys.stdin.read()
    except UnicodeDecodeError as error:
        raise InputError(f"standard input is not text: {error}") from error
    payload = parse_json(text, "standard input")
    sys.stdout.write(calculator.encode(payload) + "\n")


@plan_tasks.command("decode")
def decode(token: Annotated[str, typer.Argument(metavar="TOKEN")], as_json: AsJson = False) -> None:
    """Prints a token's payload; exit status 2 when it is none of ours."""
    payload = calculator.decode(token)
    if as_json:
        print_json(payload)
    else:
        console.print_json(data=payload)


@plan_tasks.command("ranges")
def ranges(
    entries: Annotated[str, typer.Option(help="Entries of each manifest, for example 60,60,60,70.")],
    batch_size: BatchSize = 100,
    as_json: AsJson = False,
) -> None:
    """Cuts manifests into entry ranges and counts what reading them costs."""
    from planning_health.assignment.calculator import parse_integers

    document = calculator.ranges(parse_integers(entries, "--entries"), batch_size)
    if as_json:
        print_json(document)
        return
    rows = [
        (number, ", ".join(f"manifest {manifest} [{start}, {end})" for manifest, start, end in batch))
        for number, batch in enumerate(document["batches"])
    ]
    print_table(["batch", "ranges"], rows)
    print_table(["figure", "value"], [(name, value) for name, value in document.items() if name != "batches"])


def _print(document: dict[str, Any], as_json: bool) -> None:
    if as_json:
        print_json(document)
        return
    computed = document["plans_computed"]
    print_table(["figure", "value"], [(name, value) for name, value in document.items() if name != "plans_computed"])
    print_table(["plans computed with", "plans"], [(name.replace("_", " "), value) for name, value in computed.items()])
