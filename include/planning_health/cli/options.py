"""Options that several commands share, and what they resolve to."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from planning_health.catalogs import spark_session
from planning_health.errors import InputError
from planning_health.identifiers import TableName
from planning_health.metadata import SnapshotChoice
from planning_health.run_folder import CLI_DAG_ID, RunFolder
from planning_health.settings import SettingsDocument
from planning_health.stages import table_stage

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SettingsFile = Annotated[
    Path | None,
    typer.Option(
        "--settings", help="Settings file; default: $PLANNING_HEALTH_SETTINGS, else the demonstration lake's."
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document on standard output.")]
TableArgument = Annotated[
    str, typer.Argument(metavar="TABLE", help="catalog.namespace.table; back quotes around parts with dots.")
]
Where = Annotated[
    list[str] | None, typer.Option("--where", help="A predicate as in Spark SQL; may be given several times.")
]
SnapshotId = Annotated[int | None, typer.Option("--snapshot-id", help="Measure this snapshot.")]
Ref = Annotated[str | None, typer.Option("--ref", help="Measure this branch or tag.")]
WithSpark = Annotated[bool, typer.Option("--spark", help="Let Spark's executors read the manifests.")]


@contextmanager
def optional_spark(settings: SettingsDocument, wanted: bool) -> Iterator[SparkSession | None]:
    """A Spark session for the time of a command, or ``None`` when it works without.

    What Java prints is shown with ``--verbose`` only.

    Raises:
        InputError: when Java is missing, a secret is not set, or Spark does not start.
    """
    quiet = not logging.getLogger("planning_health").isEnabledFor(logging.INFO)
    session = spark_session(settings, "planning-health", quiet=quiet) if wanted else None
    try:
        yield session
    finally:
        if session is not None:
            session.stop()


@contextmanager
def told_by_the_command() -> Iterator[None]:
    """A step whose failure ends the command with its reason: its own warning would say it twice."""
    steps = logging.getLogger(table_stage.__name__)
    level = steps.level
    steps.setLevel(logging.ERROR)
    try:
        yield
    finally:
        steps.setLevel(level)


def new_run_folder(settings: SettingsDocument) -> RunFolder:
    """A run folder for one invocation of the command line."""
    return RunFolder(settings.home, CLI_DAG_ID, f"cli__{datetime.now(UTC).isoformat(timespec='microseconds')}")


def table_name(settings: SettingsDocument, text: str) -> TableName:
    """The name of a table as somebody gave it.

    Raises:
        InputError: when it is no full name, with the one that it would be in the settings' only catalog.
    """
    try:
        return TableName.parse(text)
    except InputError as error:
        if meant := _in_only_catalog(settings, text):
            raise InputError(f"{error}, did you mean {str(meant)!r}?") from error
        raise


def _in_only_catalog(settings: SettingsDocument, text: str) -> TableName | None:
    if len(settings.catalogs) != 1:
        return None
    (catalog,) = settings.catalogs
    with suppress(InputError):
        meant = TableName.parse(f"{catalog}.{text}")
        return meant if meant.namespace[0] != catalog else None
    return None


Value = TypeVar("Value")


def needed(value: Value | None, option: str) -> Value:
    """The value of an option that this way of calling a command cannot do without.

    Raises:
        InputError: when it was left out.
    """
    if value is None:
        raise InputError(f"{option} is missing")
    return value


def snapshot_choice(snapshot_id: int | None, ref: str | None) -> SnapshotChoice:
    """The snapshot that ``--snapshot-id`` or ``--ref`` names.

    Raises:
        InputError: when both are given.
    """
    return SnapshotChoice(snapshot_id=snapshot_id, ref=ref)


def metrics_modes(option: str, texts: list[str]) -> tuple[str | None, dict[str, str]]:
    """The default metrics mode and those of columns, from ``default=MODE`` and ``column.NAME=MODE``.

    Raises:
        InputError: naming the option for a text of another form.
    """
    default: str | None = None
    columns: dict[str, str] = {}
    for text in texts:
        key, equals, mode = text.rpartition("=")
        if not equals or not (key == "default" or key.startswith("column.")):
            raise InputError(f"{option} {text!r} is not of the form default=MODE or column.NAME=MODE")
        if key == "default":
            default = mode
        else:
            columns[key.removeprefix("column.")] = mode
    return default, columns
