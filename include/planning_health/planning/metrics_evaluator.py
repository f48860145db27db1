"""File pruning by column metrics: which files may hold a matching row, by counts and bounds.

The rules are those of ``InclusiveMetricsEvaluator``. A missing count or bound is unknown and might match;
bounds are independent of each other. A column that was not recorded might match everywhere, and is reported.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from planning_health.planning.comparable import Comparable, FloatKeys, Ints, Mask, comparable
from planning_health.planning.evaluation import IN_PREDICATE_LIMIT, evaluate
from planning_health.planning.expressions import BoundPredicate, Expression, Operation, leaves

if TYPE_CHECKING:
    from pyiceberg.types import IcebergType

UNKNOWN = -1
"""A count that a file does not have."""


@dataclass(frozen=True)
class FieldMetrics:
    """The metrics of one column over many files; counts are ``UNKNOWN`` where a file has none."""

    value_count: Ints
    null_count: Ints
    nan_count: Ints
    lower: Comparable
    upper: Comparable

    def __len__(self) -> int:
        return len(self.value_count)

    @cached_property
    def may_contain_null(self) -> Mask:
        """The null count is not zero, or unknown."""
        result: Mask = self.null_count != 0
        return result

    @cached_property
    def may_contain_nan(self) -> Mask:
        """The NaN count is not zero, or unknown."""
        result: Mask = self.nan_count != 0
        return result

    @cached_property
    def nulls_only(self) -> Mask:
        """All values are known to be null."""
        result: Mask = (self.value_count >= 0) & (self.value_count == self.null_count)
        return result

    @cached_property
    def nans_only(self) -> Mask:
        """All values are known to be NaN."""
        result: Mask = (self.value_count >= 0) & (self.value_count == self.nan_count)
        return result

    @cached_property
    def nothing_to_compare(self) -> Mask:
        """All values are null, or all are NaN: no comparison can hold."""
        return self.nulls_only | self.nans_only

    @cached_property
    def lower_usable(self) -> Mask:
        """There is a lower bound that is not NaN (ORC writes NaN bounds that mean nothing)."""
        return self.lower.valid & ~self.lower.nan

    @cached_property
    def unique(self) -> Mask:
        """All values are the one value of both bounds, without nulls and NaN."""
        unique = ~self.may_contain_null & self.lower.same(self.upper) & ~self.lower.nan
        return unique & ~self.may_contain_nan if self._floating else unique

    @property
    def _floating(self) -> bool:
        return isinstance(self.lower, FloatKeys)

    def take(self, rows: Ints | slice) -> FieldMetrics:
        """Select files; a slice of them is not copied."""
        return FieldMetrics(
            self.value_count[rows],
            self.null_count[rows],
            self.nan_count[rows],
            self.lower.take(rows),
            self.upper.take(rows),
        )


class MetricsColumns:
    """The recorded metrics of a table of files, decoded once per column and type.

    Args:
        files: the ``data_files`` or ``delete_files`` of a recorded picture.
        recorded: ids of the columns that were recorded.
    """

    def __init__(self, files: pa.Table, recorded: frozenset[int]) -> None:
        self._files = files
        self._recorded = recorded
        self._fields: dict[tuple[int, str], FieldMetrics] = {}
        self.record_count: Ints = _counts(files["record_count"])

    def is_recorded(self, field_id: int) -> bool:
        """Whether the column's metrics are part of the picture."""
        return field_id in self._recorded

    def field(self, field_id: int, field_type: IcebergType) -> FieldMetrics:
        """Return a column's metrics, its bounds decoded as the given type."""
        key = (field_id, str(field_type))
        if key not in self._fields:
            self._fields[key] = FieldMetrics(
                self._count("value_count", field_id),
                self._count("null_value_count", field_id),
                self._count("nan_value_count", field_id),
                self._bound("lower_bound", field_id, field_type),
                self._bound("upper_bound", field_id, field_type),
            )
        return self._fields[key]

    def _count(self, name: str, field_id: int) -> Ints:
        column = f"{name}.{field_id}"
        if column not in self._files.column_names:
            return np.full(len(self._files), UNKNOWN, dtype=np.int64)
        return _counts(self._files[column])

    def _bound(self, name: str, field_id: int, field_type: IcebergType) -> Comparable:
        column = f"{name}.{field_id}"
        if column not in self._files.column_names:
            return comparable(pa.nulls(len(self._files), pa.binary()), field_type)
        return comparable(self._files[column], field_type)


def _counts(column: pa.ChunkedArray) -> Ints:
    return np.asarray(column.fill_null(UNKNOWN).to_numpy(), dtype=np.int64)


class InclusiveMetricsEvaluator:
    """Evaluates one bound row expression (NOT already pushed down) on files.

    Attributes:
        unrecorded: names of the predicate's columns without recorded metrics, which might match anything.
    """

    def __init__(self, expr: Expression, columns: MetricsColumns) -> None:
        self._expr = expr
        self._columns = columns
        predicates = [leaf for leaf in leaves(expr) if isinstance(leaf, BoundPredicate)]
        self.unrecorded = {leaf.ref.name for leaf in predicates if not columns.is_recorded(leaf.ref.field_id)}

    def eval(self, span: slice) -> Mask:
        """Return which files of a span of the table's files might match."""
        counts = self._columns.record_count[span]
        whole = len(counts) == len(self._columns.record_count)

        def leaf(pred: BoundPredicate) -> Mask:
            if not self._columns.is_recorded(pred.ref.field_id):
                return np.ones(len(counts), dtype=np.bool_)
            field = self._columns.field(pred.ref.field_id, pred.ref.type)
            return _RULES[pred.op](field if whole else field.take(span), pred)

        might_match = evaluate(self._expr, leaf, len(counts))
        return ((counts > 0) & might_match) | (counts < 0)


def _is_null(field: FieldMetrics, _: BoundPredicate) -> Mask:
    return field.may_contain_null


def _not_null(field: FieldMetrics, _: BoundPredicate) -> Mask:
    return ~field.nulls_only


def _is_nan(field: FieldMetrics, _: BoundPredicate) -> Mask:
    return ~field.nulls_only & field.may_contain_nan


def _not_nan(field: FieldMetrics, _: BoundPredicate) -> Mask:
    return ~field.nans_only


def _lower_lets_lt(field: FieldMetrics, pred: BoundPredicate) -> Mask:
    return ~field.lower_usable | field.lower.lt(pred.literal)


def _lower_lets_le(field: FieldMetrics, pred: BoundPredicate) -> Mask:
    return ~field.lower_usable | field.lower.le(pred.literal)


def _lt(field: FieldMetrics, pred: BoundPredicate) -> Mask:
    return ~field.nothing_to_compare & _lower_lets_lt(field, pred)


def _lt_eq(field: FieldMetrics, pred: BoundPredicate) -> Mask:
    return ~field.nothing_to_compare & _lower_lets_le(field, pred)


def _gt(field: FieldMetrics, pred: BoundPredicate) -> Mask:
    return ~field.nothing_to_compare & ~field.upper.le(pred.literal)


def _gt_eq(field: FieldMetrics, pred: BoundPredicate) -> Mask:
    return ~field.nothing_to_compare & ~field.upper.lt(pred.literal)


def _eq(field: FieldMetrics, pred: BoundPredicate) -> Mask:
    return _lt_eq(field, pred) & ~field.upper.lt(pred.literal)


def _not_eq(field: FieldMetrics, pred: BoundPredicate) -> Mask:
    return ~(field.unique & field.lower.eq(pred.literal))


def _in(field: FieldMetrics, pred: BoundPredicate) -> Mask:
    comparable_rows = ~field.nothing_to_compare
    if len(pred.literals) > IN_PREDICATE_LIMIT:
        return comparable_rows
    within = ~field.lower_usable
    for lit in pred.literals:
        within = within | (field.lower.le(lit) & ~field.upper.lt(lit))
    return comparable_rows & within


def _not_in(field: FieldMetrics, pred: BoundPredicate) -> Mask:
    return ~(field.unique & field.lower.is_in(pred.literals))


def _starts_with(field: FieldMetrics, pred: BoundPredicate) -> Mask:
    prefix = pred.literal.value
    low_enough = field.lower.le(pred.literal) | field.lower.starts_with(prefix)
    within = ~field.lower.valid | (low_enough & ~field.upper.lt(pred.literal))
    return ~field.nulls_only & within


def _not_starts_with(field: FieldMetrics, pred: BoundPredicate) -> Mask:
    prefix = pred.literal.value
    all_start = field.lower.starts_with(prefix) & field.upper.starts_with(prefix)
    return field.may_contain_null | ~all_start


_RULES: dict[Operation, Callable[[FieldMetrics, BoundPredicate], Mask]] = {
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
