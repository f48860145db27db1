"""Random filters over a schema, with literals near the values that the random files hold."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

from pyiceberg.types import (
    BooleanType,
    DateType,
    DoubleType,
    FloatType,
    IcebergType,
    IntegerType,
    LongType,
    StringType,
    TimestampNanoType,
    TimestampType,
    TimestamptzNanoType,
    TimestamptzType,
)
from tests.planning.java_tables import literal_of, pool

from planning_health.planning.expressions import (
    PREFIXES,
    SETS,
    UNARY,
    Expression,
    Operation,
    UnboundPredicate,
    and_,
    not_,
    or_,
)
from planning_health.planning.literals import Kind, Literal

if TYPE_CHECKING:
    from pyiceberg.schema import Schema

_NAN = {Operation.IS_NAN, Operation.NOT_NAN}
_STEPPED = (IntegerType, LongType, DateType, TimestampType, TimestamptzType, TimestampNanoType, TimestamptzNanoType)


class PredicateMaker:
    """Makes filters; the same seed makes the same ones."""

    def __init__(self, schema: Schema, seed: int) -> None:
        self._random = random.Random(seed)  # noqa: S311 - tests want the same filters again
        fields = [(schema.find_column_name(i) or "", schema.find_type(i)) for i in sorted(schema.field_ids)]
        self._columns = [(name, field_type) for name, field_type in fields]

    def expression(self, depth: int = 2) -> Expression:
        """A filter of at most 2^depth predicates."""
        rng = self._random
        if depth == 0 or rng.random() < 0.45:
            return self.predicate()
        kind = rng.random()
        if kind < 0.2:
            return not_(self.expression(depth - 1))
        join = and_ if kind < 0.65 else or_
        return join(self.expression(depth - 1), self.expression(depth - 1))

    def predicate(self) -> UnboundPredicate:
        """One predicate on a random column."""
        rng = self._random
        name, column_type = rng.choice(self._columns)
        if not column_type.is_primitive:
            return UnboundPredicate(rng.choice([Operation.IS_NULL, Operation.NOT_NULL]), name)
        op = rng.choice(self._operations(column_type))
        if op in UNARY:
            return UnboundPredicate(op, name)
        if op in SETS:
            size = rng.choice([1, 2, 3, 3])
            literals = [self._literal(column_type) for _ in range(size)]
            if isinstance(column_type, IntegerType | LongType) and rng.random() < 0.15:
                literals += [Literal(Kind.LONG, value) for value in range(1000, 1201)]
            return UnboundPredicate(op, name, tuple(literals))
        return UnboundPredicate(op, name, (self._literal(column_type),))

    def _operations(self, column_type: IcebergType) -> list[Operation]:
        floating = isinstance(column_type, FloatType | DoubleType)
        text = isinstance(column_type, StringType)
        return [op for op in Operation if (op not in _NAN or floating) and (op not in PREFIXES or text)]

    def _literal(self, column_type: IcebergType) -> Literal:
        rng = self._random
        value: Any = rng.choice(pool(column_type))
        if isinstance(column_type, IntegerType) and rng.random() < 0.15:
            return Literal(Kind.LONG, rng.choice([2**31, -(2**31) - 1, 2**40]))
        if isinstance(column_type, FloatType) and rng.random() < 0.1:
            return Literal(Kind.DOUBLE, rng.choice([1e39, -1e39]))
        if isinstance(column_type, _STEPPED) and not isinstance(column_type, BooleanType):
            value = min(max(value + rng.choice([-1, 0, 0, 0, 1]), -(2**31)), 2**62)
        if isinstance(column_type, StringType) and rng.random() < 0.3:
            value = value[: rng.randint(0, len(value))] + rng.choice(["", "b", "\U0001f600"])
        return literal_of(column_type, value)
