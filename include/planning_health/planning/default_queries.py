"""Queries for a table that has none configured: what its partitioning invites.

One equality on each partition field, for a value in the middle of those that exist, and for time fields the 30
latest days.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any
from uuid import UUID

import numpy as np
from pyiceberg.transforms import (
    BucketTransform,
    DayTransform,
    HourTransform,
    MonthTransform,
    UnknownTransform,
    VoidTransform,
    YearTransform,
)
from pyiceberg.types import (
    DateType,
    DoubleType,
    FloatType,
    IcebergType,
    TimestampNanoType,
    TimestampType,
    TimestamptzNanoType,
    TimestamptzType,
    TimeType,
)

from planning_health.identifiers import quote_identifier, sql_string
from planning_health.metadata.single_values import decode
from planning_health.planning.sql_constants import Interval, add_interval

if TYPE_CHECKING:
    from pyiceberg.partitioning import PartitionField

    from planning_health.planning.projection import BoundSpec
    from planning_health.planning.scan import ScanPlanner

LATEST_DAYS = 30
_EPOCH = dt.datetime(1970, 1, 1)
_UNITS: dict[type, Interval] = {
    YearTransform: Interval(months=12),
    MonthTransform: Interval(months=1),
    DayTransform: Interval(micros=86_400_000_000),
    HourTransform: Interval(micros=3_600_000_000),
}
_ZONED = (TimestamptzType, TimestamptzNanoType)
_NANOS = (TimestampNanoType, TimestamptzNanoType)


@dataclass(frozen=True, slots=True)
class DefaultQuery:
    """A query with a name that says what it asks; the predicate is Spark SQL."""

    name: str
    where: str


def default_queries(planner: ScanPlanner) -> list[DefaultQuery]:
    """Make the queries that a table's current spec invites; none for an unpartitioned or empty table."""
    spec = planner.specs.get(planner.metadata.info.default_spec_id)
    if spec is None:
        return []
    return [query for position in range(len(spec)) for query in _field_queries(planner, spec, position)]


def _field_queries(planner: ScanPlanner, spec: BoundSpec, position: int) -> Iterator[DefaultQuery]:
    field = spec.spec.fields[position]
    source = planner.metadata.info.schema.find_column_name(field.source_id)
    if source is None or isinstance(field.transform, VoidTransform | UnknownTransform):
        return
    column = ".".join(quote_identifier(part) for part in source.split("."))
    source_type = planner.metadata.info.schema.find_type(field.source_id)
    values = _existing_values(planner, spec, position)
    if isinstance(field.transform, BucketTransform):
        value = _middle_lower_bound(planner, field, source_type)
        if value is not None:
            yield DefaultQuery(f"{field.name}: one value", f"{column} = {sql_literal(source_type, value)}")
    elif values:
        middle = values[(len(values) - 1) // 2]
        if type(field.transform) in _UNITS:
            yield DefaultQuery(f"{field.name}: one value", _one_unit(field, column, source_type, middle))
            latest = _start(field, values[-1] + 1) - dt.timedelta(days=LATEST_DAYS)
            condition = f"{column} >= {_time_literal(source_type, latest)}"
            yield DefaultQuery(f"{field.name}: {LATEST_DAYS} latest days", condition)
        else:
            yield DefaultQuery(f"{field.name}: one value", f"{column} = {sql_literal(source_type, middle)}")


def _existing_values(planner: ScanPlanner, spec: BoundSpec, position: int) -> list[Any]:
    """Return the distinct partition values of live files in order, without null and NaN."""
    raws = planner.live_partition_values(spec.spec_id, position)
    values = {decode(raw, spec.field_types[position]) for raw in raws if raw is not None}
    return sorted(value for value in values if value is not None and not _is_nan(value))


def _is_nan(value: Any) -> bool:
    return isinstance(value, float) and math.isnan(value)


def _middle_lower_bound(planner: ScanPlanner, field: PartitionField, source_type: IcebergType) -> Any:
    """Return a value that exists in the column: a bucket number alone does not tell one."""
    column = f"lower_bound.{field.source_id}"
    table = planner.metadata.data_files
    if column not in table.column_names:
        return None
    bounds = [raw for raw in table[column].unique().to_pylist() if raw is not None]
    values = sorted(value for value in (decode(raw, source_type) for raw in bounds) if value is not None)
    return values[(len(values) - 1) // 2] if values else None


def _start(field: PartitionField, value: int) -> dt.datetime:
    """Return the instant at which a time partition begins."""
    unit = _UNITS[type(field.transform)]
    moved = add_interval(_EPOCH, Interval(unit.months * value, unit.micros * value))
    assert isinstance(moved, dt.datetime)  # noqa: S101 - it started as one
    return moved


def _one_unit(field: PartitionField, column: str, source_type: IcebergType, value: int) -> str:
    start, end = _start(field, value), _start(field, value + 1)
    if isinstance(source_type, DateType) and isinstance(field.transform, DayTransform):
        return f"{column} = {_time_literal(source_type, start)}"
    return f"{column} >= {_time_literal(source_type, start)} AND {column} < {_time_literal(source_type, end)}"


def _time_literal(source_type: IcebergType, value: dt.datetime) -> str:
    if isinstance(source_type, DateType):
        return f"DATE '{value.date().isoformat()}'"
    if isinstance(source_type, _ZONED):
        return f"TIMESTAMP '{value.isoformat(sep=' ')}+00:00'"
    return f"TIMESTAMP_NTZ '{value.isoformat(sep=' ')}'"


def sql_literal(column_type: IcebergType, value: Any) -> str:
    """Write an internal value as a Spark SQL literal that compares with a column of this type."""
    if isinstance(column_type, DateType):
        return _time_literal(column_type, _EPOCH + dt.timedelta(days=value))
    if isinstance(column_type, TimestampType | TimestampNanoType | TimestamptzType | TimestamptzNanoType):
        micros = value // 1000 if isinstance(column_type, _NANOS) else value
        return _time_literal(column_type, _EPOCH + dt.timedelta(microseconds=micros))
    if isinstance(column_type, TimeType):
        return sql_string((_EPOCH + dt.timedelta(microseconds=value)).time().isoformat())
    if isinstance(column_type, FloatType | DoubleType):
        return f"DOUBLE({sql_string(repr(float(np.float64(value))))})"
    return next((write(value) for kind, write in _WRITERS if isinstance(value, kind)), sql_string(str(value)))


_WRITERS: tuple[tuple[type, Callable[[Any], str]], ...] = (
    (bool, lambda value: "true" if value else "false"),
    (int, str),
    (Decimal, lambda value: f"{value:f}"),
    (bytes, lambda value: f"X'{value.hex()}'"),
    (UUID, lambda value: sql_string(str(value))),
)
