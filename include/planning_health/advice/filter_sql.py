"""Writes an observed filter as the WHERE clause that a person would write in Spark SQL."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator
from typing import Any, Final

from pyiceberg.schema import Schema
from pyiceberg.types import FloatType, IcebergType, StructType

from planning_health.errors import InputError
from planning_health.identifiers import quote_identifier, sql_string
from planning_health.planning.expressions import (
    PREFIXES,
    SETS,
    UNARY,
    And,
    BoundPredicate,
    Expression,
    Not,
    Operation,
    Or,
    bind,
)
from planning_health.planning.literals import Kind, Literal, to_json_value

_COMPARISONS: Final = {
    Operation.LT: "<",
    Operation.LT_EQ: "<=",
    Operation.GT: ">",
    Operation.GT_EQ: ">=",
    Operation.EQ: "=",
    Operation.NOT_EQ: "<>",
}


def filter_sql(expression: Expression, schema: Schema) -> str:
    """A filter as a WHERE clause.

    Raises:
        InputError: it does not fit the schema, or has a value that Spark SQL has no literal for.
    """
    paths = dict(_paths(schema.as_struct(), ()))
    return _sql(bind(expression, schema), paths)


def _paths(struct: StructType, above: tuple[str, ...]) -> Iterator[tuple[int, str]]:
    for field in struct.fields:
        path = (*above, field.name)
        yield field.field_id, ".".join(map(quote_identifier, path))
        if isinstance(field.field_type, StructType):
            yield from _paths(field.field_type, path)


def _sql(expression: Expression, paths: dict[int, str]) -> str:
    match expression:
        case And(left, right):
            return f"({_sql(left, paths)} AND {_sql(right, paths)})"
        case Or(left, right):
            return f"({_sql(left, paths)} OR {_sql(right, paths)})"
        case Not(child):
            return f"NOT ({_sql(child, paths)})"
        case BoundPredicate():
            return _predicate(expression, paths)
    return str(expression)


def _predicate(leaf: BoundPredicate, paths: dict[int, str]) -> str:
    column, op = paths.get(leaf.ref.field_id), leaf.op
    if column is None:
        raise InputError(f"column {leaf.ref.name!r} is within a list or map")
    if op in UNARY:
        return _unary(op, column)
    values = [_literal(value, leaf.ref.type) for value in leaf.literals]
    if op in PREFIXES:
        negation = "NOT " if op is Operation.NOT_STARTS_WITH else ""
        return f"{negation}startswith({column}, {values[0]})"
    if op in SETS:
        return f"{column} {'IN' if op is Operation.IN else 'NOT IN'} ({', '.join(values)})"
    return f"{column} {_COMPARISONS[op]} {values[0]}"


def _unary(op: Operation, column: str) -> str:
    negation = "NOT " if op in (Operation.NOT_NULL, Operation.NOT_NAN) else ""
    if op in (Operation.IS_NAN, Operation.NOT_NAN):
        return f"{negation}isnan({column})"
    return f"{column} IS {negation}NULL"


def _literal(value: Literal, kind: IcebergType) -> str:
    writer = _WRITERS.get(value.kind)
    if writer is None:
        raise InputError(f"Spark SQL has no literal for {kind} {value}")
    text = writer(value.value)
    return f"CAST({text} AS FLOAT)" if isinstance(kind, FloatType) else text


def _instant(micros: int) -> str:
    return f"{dt.datetime(1970, 1, 1) + dt.timedelta(microseconds=micros)}"


_WRITERS: Final[dict[Kind, Callable[[Any], str]]] = {
    Kind.BOOLEAN: lambda value: "true" if value else "false",
    Kind.INT: str,
    Kind.LONG: str,
    Kind.FLOAT: lambda value: f"{value!r}D",
    Kind.DOUBLE: lambda value: f"{value!r}D",
    Kind.DECIMAL: str,
    Kind.STRING: sql_string,
    Kind.UUID: lambda value: sql_string(str(value)),
    Kind.DATE: lambda days: f"DATE'{to_json_value(Literal(Kind.DATE, days))}'",
    Kind.TIMESTAMP: lambda micros: f"TIMESTAMP_NTZ'{_instant(micros)}'",
    Kind.TIMESTAMPTZ: lambda micros: f"TIMESTAMP'{_instant(micros)}+00:00'",
    Kind.BINARY: lambda value: f"X'{value.hex().upper()}'",
    Kind.FIXED: lambda value: f"X'{value.hex().upper()}'",
}
