"""The command line's frame: sub-commands, and one place where errors become exit statuses."""

from __future__ import annotations

import logging
import sys
from typing import Final

import typer
from rich.logging import RichHandler

import planning_health
from planning_health.cli.output import console, errors, plain
from planning_health.errors import PlanningHealthError

FINDINGS_EXIT_STATUS: Final = 3
MOST_SHOWN: Final = 500
"""Characters of an error's line: it repeats what was given, however long that is."""

app = typer.Typer(
    name="planning-health",
    help="Keeps Apache Iceberg tables quick to plan: measures, predicts, repairs, verifies, reports.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


class FindingsError(PlanningHealthError):
    """Findings stand at or above the level of ``--fail-on``."""

    exit_status = FINDINGS_EXIT_STATUS


@app.callback(invoke_without_command=True)
def _options(
    version: bool = typer.Option(False, "--version", help="Show the version and exit."),
    verbose: bool = typer.Option(False, "--verbose", "-v", help="Log each step to standard error."),
) -> None:
    if version:
        console.print(planning_health.__version__, highlight=False)
        raise typer.Exit
    handler = RichHandler(console=errors, show_path=False, show_time=False)
    logging.basicConfig(level=logging.WARNING, format="%(message)s", handlers=[handler])
    logging.getLogger("thrift").setLevel(logging.CRITICAL)  # it raises what it logs
    logging.getLogger("planning_health").setLevel(logging.INFO if verbose else logging.WARNING)


def main() -> None:
    """Runs the command line.

    Exit status: 0 done; 1 the work failed; 2 bad input or configuration; 3 findings at or above ``--fail-on``.
    """
    from planning_health.cli import commands  # noqa: F401 - registers the sub-commands

    try:
        app()
    except PlanningHealthError as error:
        errors.print(f"[bold red]error:[/] {plain(_cut(str(error)))}", highlight=False, soft_wrap=True)
        sys.exit(error.exit_status)


def _cut(text: str) -> str:
    """A long text without its middle: the beginning names the value, the end says what was expected."""
    return text if len(text) <= MOST_SHOWN else f"{text[: MOST_SHOWN - 200]} … {text[-200:]}"
