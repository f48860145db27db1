"""The exact commands of an action, as a person would type them into Spark SQL: quoted, with no value left raw."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence

from planning_health.identifiers import TableName, quote_identifier, sql_string


def call(table: TableName, procedure: str, **arguments: str) -> str:
    """A call of one of Iceberg's procedures on a table; the arguments are SQL already."""
    named = {"table": sql_string(table.sql)} | arguments
    listed = ", ".join(f"{name} => {value}" for name, value in named.items())
    return f"CALL {quote_identifier(table.catalog)}.system.{procedure}({listed})"


def rewrite_manifests(table: TableName, spec_id: int, sort_by: Sequence[str] = ()) -> str:
    """The call that does what our rewrite does, without the run id in the commit."""
    arguments = {"use_caching": "false", "spec_id": str(spec_id)}
    if sort_by:
        arguments["sort_by"] = f"array({', '.join(sql_string(field) for field in sort_by)})"
    return call(table, "rewrite_manifests", **arguments)


def trim(table: TableName, spec_id: int, sort_by: Sequence[str] = ()) -> str:
    """The command that trims one spec's manifests; no released procedure of Iceberg's does."""
    options = [
        "--trim",
        "--no-rewrite",
        f"--spec-id {spec_id}",
        *(f"--sort-by {shlex.quote(name)}" for name in sort_by),
    ]
    return f"planning-health maintain {shlex.quote(str(table))} {' '.join(options)} --apply"


def rollback(table: TableName, snapshot_id: int) -> str:
    """The call that makes an earlier snapshot the current one again."""
    return call(table, "rollback_to_snapshot", snapshot_id=str(snapshot_id))


def property_changes(table: TableName, changes: Mapping[str, str | None]) -> list[str]:
    """The statements that set properties, and remove those whose value is ``None``."""
    pairs = [f"{sql_string(key)} = {sql_string(value)}" for key, value in changes.items() if value is not None]
    removed = [sql_string(key) for key, value in changes.items() if value is None]
    statements = [f"ALTER TABLE {table.sql} SET TBLPROPERTIES ({', '.join(pairs)})"] if pairs else []
    if removed:
        statements.append(f"ALTER TABLE {table.sql} UNSET TBLPROPERTIES IF EXISTS ({', '.join(removed)})")
    return statements
