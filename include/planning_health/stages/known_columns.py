"""The columns of a table as its newest measurement saw them: a form's mistakes are found before Spark starts."""

from __future__ import annotations

import glob
import json
import logging
from collections.abc import Iterable
from dataclasses import dataclass

from pyiceberg.schema import Schema

from planning_health.errors import InputError
from planning_health.identifiers import TableName
from planning_health.run_folder import paths_below, read_bytes
from planning_health.suggestions import did_you_mean, some_of

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class KnownColumns:
    """A table's columns, nested ones dotted, when it was measured."""

    names: frozenset[str]
    measured_at: str


def known_columns(home: str, table: TableName) -> KnownColumns | None:
    """The columns that the newest recording of a table holds; ``None`` before the first one."""
    folder = ("tables", glob.escape(table.catalog), table.path_segment, "metadata", "table.json")
    contents = (read_bytes(f"{home.rstrip('/')}/{path}") for path in paths_below(home, "runs", "*", "*", *folder))
    found = [json.loads(content) for content in contents if content]
    newest = max(found, key=lambda document: str(document["measured_at"]), default=None)
    if newest is None:
        return None
    names = Schema.model_validate(newest["schema"]).column_names
    return KnownColumns(frozenset(names), newest["measured_at"])


def check_columns(home: str, table: TableName, columns: Iterable[tuple[str, str]]) -> None:
    """Refuses columns that the table did not have when it was measured last.

    Args:
        home: the home folder.
        table: the table.
        columns: pairs of a form field's name and a column that it uses; names are compared as Spark does, in any case.

    Raises:
        InputError: naming the field, the column, and the columns that there are.
    """
    known = known_columns(home, table)
    if known is None:
        logger.info("%s was never measured: its columns are checked once Spark has read it", table)
        return
    lower = {name.lower() for name in known.names}
    for field, column in columns:
        if column.lower() not in lower:
            raise InputError(
                f"{field}: {table} had no column {column!r} when it was measured {known.measured_at}"
                f"{did_you_mean(column, known.names)} It had {some_of(sorted(known.names))}"
            )
