"""Metrics properties: found wrong before anything is set, and set as a whole or not at all.

Iceberg accepts some values silently and then ignores them (an unknown mode, ``truncate(0)``, the key of a struct);
these are refused here with the reason.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from pyiceberg.schema import Schema
from pyiceberg.types import PrimitiveType

from planning_health.errors import InputError
from planning_health.identifiers import TableName
from planning_health.maintenance import commands
from planning_health.maintenance.prediction import TARGET_SIZE_PROPERTY
from planning_health.maintenance.request import MaintenanceRequest
from planning_health.metadata import TableInfo
from planning_health.run_folder import RunFolder
from planning_health.suggestions import did_you_mean, some_of

PROPERTY_CHANGES: Final = "property_changes"
"""Kind of the result file that keeps the properties' earlier values, written before they are changed."""

DEFAULT_METRICS: Final = "write.metadata.metrics.default"
COLUMN_METRICS: Final = "write.metadata.metrics.column."
MAX_INFERRED_COLUMNS: Final = "write.metadata.metrics.max-inferred-column-defaults"
_INFERRED_DEFAULT: Final = 100
_TRUNCATE: Final = re.compile(r"truncate\(([0-9]+)\)")
_EXPECTED: Final = "none, counts, full or truncate(n) with n from 1 on"


@dataclass(frozen=True)
class PropertyChange:
    """One property before and after; ``None`` stands for a property that is not set."""

    key: str
    before: str | None
    after: str | None


@dataclass(frozen=True)
class PropertyPlan:
    """What would be set.

    Attributes:
        changes: properties whose value differs; none when everything is set already.
        notes: what the owner should know of the table's metrics properties.
    """

    changes: tuple[PropertyChange, ...]
    notes: tuple[str, ...]

    def commands(self, table: TableName) -> list[str]:
        """The statements that make the changes."""
        return commands.property_changes(table, {change.key: change.after for change in self.changes})

    def undo(self, table: TableName) -> list[str]:
        """The statements that undo them."""
        return commands.property_changes(table, {change.key: change.before for change in self.changes})


def plan_properties(info: TableInfo, request: MaintenanceRequest) -> PropertyPlan:
    """Checks the request's properties against the table and gives the differences.

    Raises:
        InputError: naming every value that is wrong and what was expected.
    """
    wanted: dict[str, str | None] = {}
    problems: list[str] = []
    if request.metrics_default:
        wanted[DEFAULT_METRICS] = _checked_mode(DEFAULT_METRICS, request.metrics_default, problems)
    columns: dict[str, str] = {}
    for name, mode in request.metrics_columns.items():
        column = _column(info.schema, name, problems) if mode else _removable(info, name, problems)
        if column is None:
            continue
        if column in columns:
            problems.append(f"columns {columns[column]!r} and {name!r} are the same column {column!r}")
        columns[column] = name
        wanted[COLUMN_METRICS + column] = _checked_mode(f"column {name!r}", mode, problems) if mode else None
    if request.target_manifest_bytes is not None:
        wanted[TARGET_SIZE_PROPERTY] = str(request.target_manifest_bytes)
    after = {key: value for key, value in (info.properties | wanted).items() if value is not None}
    problems += _leftovers(info.schema, after)
    if problems:
        raise InputError("; ".join(problems))
    changes = tuple(
        PropertyChange(key, info.properties.get(key), value)
        for key, value in wanted.items()
        if info.properties.get(key) != value
    )
    return PropertyPlan(changes, tuple(inspect_metrics(info.schema, after)))


def properties_after(info: TableInfo, request: MaintenanceRequest) -> dict[str, str]:
    """The table's properties once the request's are set.

    Raises:
        InputError: as :func:`plan_properties`.
    """
    changes = plan_properties(info, request).changes if request.sets_properties else ()
    after = info.properties | {change.key: change.after for change in changes}
    return {key: value for key, value in after.items() if value is not None}


def recorded_changes(run_folder: RunFolder, table: TableName) -> tuple[PropertyChange, ...]:
    """The changes that a run made or was about to make when it ended, also when it was killed."""
    recorded = run_folder.read_result(PROPERTY_CHANGES, table)
    return tuple(PropertyChange(**change) for change in recorded.data) if recorded is not None else ()


def merge_changes(earlier: Iterable[PropertyChange], planned: Iterable[PropertyChange]) -> tuple[PropertyChange, ...]:
    """The changes of a run that is started again: its earlier attempts' and those that it plans now, as one.

    The value before is the one before the first attempt, where that attempt's value stands; where it does not, the
    attempt ended before its commit, or was undone, and the planned change stands alone.
    """
    merged = {change.key: change for change in earlier}
    for change in planned:
        first = merged.get(change.key)
        before = first.before if first is not None and first.after == change.before else change.before
        merged[change.key] = PropertyChange(change.key, before, change.after)
    return tuple(merged.values())


def inspect_metrics(schema: Schema, properties: Mapping[str, str]) -> list[str]:
    """What is wrong, or not as it seems, with a table's metrics properties. Iceberg itself says nothing of these."""
    notes: list[str] = []
    default = properties.get(DEFAULT_METRICS)
    if default is not None and not is_mode(default):
        notes.append(f"{DEFAULT_METRICS} = {default!r} is not a mode: Iceberg ignores it and uses truncate(16)")
    for key, mode in sorted(properties.items()):
        if key.startswith(COLUMN_METRICS):
            notes += _column_notes(schema, key, mode, default)
    if default is None:
        columns = len(_leaf_names(schema))
        limit = inferred_limit(properties)
        if columns > limit:
            notes.append(
                f"{columns} columns, but without {DEFAULT_METRICS} only the first {limit} get statistics (top-level "
                f"columns first); set the default or {MAX_INFERRED_COLUMNS}"
            )
    return notes


def _column_notes(schema: Schema, key: str, mode: str, default: str | None) -> list[str]:
    name = key.removeprefix(COLUMN_METRICS)
    leaves = _leaf_names(schema)
    if name not in leaves:
        known = set(_all_names(schema))
        why = "is not a column with values of its own" if name in known else "is no column of the table any more"
        return [f"{key}: {name!r} {why}; the property has no effect"]
    if not is_mode(mode):
        return [f"{key} = {mode!r} is not a mode: Iceberg ignores it and uses {default or 'truncate(16)'}"]
    return []


def is_mode(mode: str) -> bool:
    """Whether Iceberg understands a metrics mode (``MetricsModes.fromString``), in any case."""
    text = mode.lower()
    truncate = _TRUNCATE.fullmatch(text)
    return text in {"none", "counts", "full"} or (truncate is not None and 0 < int(truncate[1]) < 2**31)


def _leftovers(schema: Schema, after: Mapping[str, str]) -> list[str]:
    """Properties of columns that are gone: with one of them left, Iceberg refuses every change of properties."""
    names = set(_all_names(schema))
    return [
        f"property {key} is of a column that the table does not have, and Iceberg refuses any change while it stands: "
        "remove it too (give the column an empty mode)"
        for key in sorted(after)
        if key.startswith(COLUMN_METRICS) and key.removeprefix(COLUMN_METRICS) not in names
    ]


def _checked_mode(what: str, mode: str, problems: list[str]) -> str:
    if not is_mode(mode):
        problems.append(f"metrics mode {mode!r} of {what} is not one of {_EXPECTED}")
    return mode.lower()


def _column(schema: Schema, name: str, problems: list[str]) -> str | None:
    """The column's exact name: names are given in any case, Iceberg's property keys are not."""
    leaves = _leaf_names(schema)
    if name in leaves:
        return name
    matches = [leaf for leaf in leaves if leaf.lower() == name.lower()]
    if len(matches) == 1:
        return matches[0]
    if matches:
        problems.append(f"column {name!r} could be any of {', '.join(map(repr, matches))}: give the exact case")
    elif any(known.lower() == name.lower() for known in _all_names(schema)):
        inside = [leaf for leaf in leaves if leaf.lower().startswith(name.lower() + ".")]
        problems.append(f"column {name!r} has no values of its own; name its fields: {', '.join(inside)}")
    else:
        problems.append(f"column {name!r} does not exist{did_you_mean(name, leaves)} Known: {some_of(sorted(leaves))}")
    return None


def _removable(info: TableInfo, name: str, problems: list[str]) -> str | None:
    """The column of a property to remove: leftovers of dropped columns may go too."""
    present = [key.removeprefix(COLUMN_METRICS) for key in info.properties if key.startswith(COLUMN_METRICS)]
    matches = [column for column in present if column == name] or [
        column for column in present if column.lower() == name.lower()
    ]
    if len(matches) == 1:
        return matches[0]
    if name in _all_names(info.schema):
        return name  # removed already, by an earlier attempt
    problems.append(f"column {name!r} has no metrics property to remove; set are: {some_of(sorted(present))}")
    return None


def inferred_limit(properties: Mapping[str, str]) -> int:
    """How many columns get statistics without a default; Iceberg takes its own limit for one that makes no sense."""
    try:
        limit = int(properties.get(MAX_INFERRED_COLUMNS, _INFERRED_DEFAULT))
    except ValueError:
        return _INFERRED_DEFAULT
    return limit if limit >= 0 else _INFERRED_DEFAULT


def _leaf_names(schema: Schema) -> list[str]:
    """Full names of the columns that have values, nested ones included."""
    fields = [(field_id, schema.find_type(field_id)) for field_id in schema.field_ids]
    names = [schema.find_column_name(field_id) for field_id, kind in fields if isinstance(kind, PrimitiveType)]
    return [name for name in names if name is not None]


def _all_names(schema: Schema) -> list[str]:
    names = (schema.find_column_name(field_id) for field_id in schema.field_ids)
    return [name for name in names if name is not None]


def apply_properties(java_table: Any, plan: PropertyPlan) -> None:
    """Makes all changes in one commit.

    Raises:
        InputError: when somebody changed one of the properties since the plan was made.
    """
    update = java_table.updateProperties()
    current = java_table.properties()
    for change in plan.changes:
        if current.get(change.key) != change.before:
            raise InputError(
                f"property {change.key} is {current.get(change.key)!r}, but was {change.before!r} when the change was "
                "planned; propose again"
            )
        update = update.remove(change.key) if change.after is None else update.set(change.key, change.after)
    update.commit()
