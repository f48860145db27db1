"""Partition values of many files: distinct tuples once, predicates evaluated on the distinct ones.

The rules are those of ``Evaluator``, under which null sorts before every value, so that ``x < 5`` holds for a
null partition (the metrics decide afterwards). A value that does not decode might match everything.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.types import UnknownType

from planning_health.planning.comparable import Comparable, Ints, Mask, comparable, present
from planning_health.planning.evaluation import evaluate
from planning_health.planning.expressions import BoundPredicate, Expression, Operation

if TYPE_CHECKING:
    from planning_health.planning.projection import BoundSpec


class PartitionTuples:
    """The distinct partition tuples of files of one spec.

    Args:
        spec: the files' spec.
        partitions: the ``partition`` column of those files (list of binary in the spec's order).

    Attributes:
        tuple_of_row: for each file the number of its tuple.
        raw: the distinct tuples' raw values, one binary column a field.
    """

    def __init__(self, spec: BoundSpec, partitions: pa.Array) -> None:
        self._spec = spec
        width = len(spec)
        values = pc.list_flatten(partitions)
        rows = np.arange(len(partitions)) * width
        columns = [_readable(values.take(pa.array(rows + position)), spec, position) for position in range(width)]
        self.tuple_of_row, first_rows = _factorize(columns, len(partitions))
        self.raw: list[pa.Array] = [column.take(pa.array(first_rows)) for column in columns]
        self._count = len(first_rows)
        self._fields: dict[int, Comparable] = {}

    def __len__(self) -> int:
        return self._count

    def field(self, position: int) -> Comparable:
        """Return the distinct tuples' values of one partition field."""
        if position not in self._fields:
            self._fields[position] = comparable(self.raw[position], self._spec.field_types[position])
        return self._fields[position]

    def eval(self, partition_filter: Expression) -> Mask:
        """Return which distinct tuples match a bound partition filter."""
        return evaluate(
            partition_filter, lambda pred: self.matches(pred) | self.undecodable(pred.ref.position), self._count
        )

    def matches(self, pred: BoundPredicate) -> Mask:
        """Return which distinct tuples satisfy one predicate on a partition field."""
        return _RULES[pred.op](self.field(pred.ref.position), pred)

    def undecodable(self, position: int) -> Mask:
        """Return which distinct tuples have a value of one field that is there and does not decode."""
        return present(self.raw[position]) & ~self.field(position).valid

    def keys(self) -> list[tuple[bytes | None, ...]]:
        """Return each distinct tuple's raw values, to compare with tuples of other files of the spec."""
        columns = [column.to_pylist() for column in self.raw]
        return list(zip(*columns, strict=True)) if columns else [()] * self._count


def _readable(column: pa.Array, spec: BoundSpec, position: int) -> pa.Array:
    """Read a field as Iceberg does: the values of a dropped source column are all null."""
    if isinstance(spec.field_types[position], UnknownType):
        return pa.nulls(len(column), column.type)
    return column


def _factorize(columns: list[pa.Array], rows: int) -> tuple[Ints, Ints]:
    """Number the distinct tuples; return (tuple number of each row, first row of each tuple)."""
    codes: Ints = np.zeros(rows, dtype=np.int64)
    for column in columns:
        encoded = pc.dictionary_encode(column, null_encoding="encode")
        indices = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
        combined = codes * max(1, len(encoded.dictionary)) + indices
        codes = np.unique(combined, return_inverse=True)[1].reshape(-1).astype(np.int64)
    if rows == 0:
        return codes, np.zeros(0, dtype=np.int64)
    first_rows = np.unique(codes, return_index=True)[1].astype(np.int64)
    return codes, first_rows


def _is_null(field: Comparable, _: BoundPredicate) -> Mask:
    return ~field.valid


def _not_null(field: Comparable, _: BoundPredicate) -> Mask:
    return field.valid


def _is_nan(field: Comparable, _: BoundPredicate) -> Mask:
    return field.nan


def _not_nan(field: Comparable, _: BoundPredicate) -> Mask:
    return ~field.nan


def _lt(field: Comparable, pred: BoundPredicate) -> Mask:
    return ~field.valid | field.lt(pred.literal)


def _lt_eq(field: Comparable, pred: BoundPredicate) -> Mask:
    return ~field.valid | field.le(pred.literal)


def _gt(field: Comparable, pred: BoundPredicate) -> Mask:
    return ~_lt_eq(field, pred)


def _gt_eq(field: Comparable, pred: BoundPredicate) -> Mask:
    return ~_lt(field, pred)


def _eq(field: Comparable, pred: BoundPredicate) -> Mask:
    return field.eq(pred.literal)


def _not_eq(field: Comparable, pred: BoundPredicate) -> Mask:
    return ~field.eq(pred.literal)


def _in(field: Comparable, pred: BoundPredicate) -> Mask:
    return field.is_in(pred.literals)


def _not_in(field: Comparable, pred: BoundPredicate) -> Mask:
    return ~field.is_in(pred.literals)


def _starts_with(field: Comparable, pred: BoundPredicate) -> Mask:
    return field.starts_with(pred.literal.value)


def _not_starts_with(field: Comparable, pred: BoundPredicate) -> Mask:
    return ~field.starts_with(pred.literal.value)


_RULES: dict[Operation, Callable[[Comparable, BoundPredicate], Mask]] = {
    Operation.IS_NULL: _is_null,
    Operation.NOT_NULL: _not_null,
    Operation.IS_NAN: _is_nan,
    Operation.NOT_NAN: _not_nan,
    Operation.LT: _lt,
    Operation.LT_EQ: _lt_eq,
    Operation.GT: _gt,
    Operation.GT_EQ: _gt_eq,
    Operation.EQ: _eq,
    Operation.NOT_EQ: _not_eq,
    Operation.IN: _in,
    Operation.NOT_IN: _not_in,
    Operation.STARTS_WITH: _starts_with,
    Operation.NOT_STARTS_WITH: _not_starts_with,
}
