"""Manifest pruning: which manifests of one spec may hold a matching partition, by their summaries.

The rules are those of ``ManifestEvaluator``. Summaries are positional in the manifest's own spec; a manifest
without summaries might always match. A null lower bound means that all values are null. A bound that is there
and does not decode, on which Iceberg fails, leaves everything possible.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from pyiceberg.types import DoubleType, FloatType

from planning_health.planning.comparable import Comparable, Ints, Mask, comparable, present
from planning_health.planning.evaluation import IN_PREDICATE_LIMIT, evaluate
from planning_health.planning.expressions import BoundPredicate, Expression, Operation

if TYPE_CHECKING:
    from planning_health.planning.projection import BoundSpec


@dataclass(frozen=True)
class FieldSummaries:
    """The summaries of one partition field over many manifests.

    Attributes:
        contains_null: at least one null partition value.
        contains_nan: at least one NaN; false where it is unknown.
        nan_known: the summary says whether there are NaN values.
        lower: lower bounds; not valid where there is none.
        upper: upper bounds.
        undecodable: a bound is there and does not decode.
        floating: the field is a float or a double.
    """

    contains_null: Mask
    contains_nan: Mask
    nan_known: Mask
    lower: Comparable
    upper: Comparable
    undecodable: Mask
    floating: bool

    @cached_property
    def all_null(self) -> Mask:
        """All partition values are null."""
        all_null = self.contains_null & ~self.lower.valid
        return all_null & self.nan_known & ~self.contains_nan if self.floating else all_null

    @cached_property
    def unique(self) -> Mask:
        """All partition values are the one value of both bounds."""
        unique = ~self.contains_null & self.lower.same(self.upper)
        return unique & self.nan_known & ~self.contains_nan if self.floating else unique


class ManifestEvaluator:
    """The manifests of one spec, ready for any number of predicates.

    Args:
        spec: the spec that all these manifests were written with.
        summaries: the ``partitions`` column of those manifests (list of struct, null = absent).
    """

    def __init__(self, spec: BoundSpec, summaries: pa.Array) -> None:
        self._spec = spec
        self._count = len(summaries)
        lengths = summaries.value_lengths().fill_null(-1).to_numpy(zero_copy_only=False)
        self._present: Ints = np.flatnonzero(lengths == len(spec))
        self._summaries = summaries.take(pa.array(self._present)).flatten()
        self._fields: dict[int, FieldSummaries] = {}

    def eval(self, partition_filter: Expression) -> Mask:
        """Return which manifests might match a bound partition filter."""
        result = np.ones(self._count, dtype=np.bool_)
        result[self._present] = evaluate(partition_filter, self._leaf, len(self._present))
        return result

    def _leaf(self, pred: BoundPredicate) -> Mask:
        field = self._field(pred.ref.position)
        return _RULES[pred.op](field, pred) | field.undecodable

    def _field(self, position: int) -> FieldSummaries:
        if position not in self._fields:
            self._fields[position] = self._load(position)
        return self._fields[position]

    def _load(self, position: int) -> FieldSummaries:
        rows = np.arange(position, len(self._summaries), len(self._spec))
        part = self._summaries.take(pa.array(rows))
        nan = part.field("contains_nan")
        field_type = self._spec.field_types[position]
        lower, upper = part.field("lower_bound"), part.field("upper_bound")
        lowest, highest = comparable(lower, field_type), comparable(upper, field_type)
        return FieldSummaries(
            contains_null=_bools(part.field("contains_null")),
            contains_nan=_bools(nan),
            nan_known=present(nan),
            lower=lowest,
            upper=highest,
            undecodable=(present(lower) & ~lowest.valid) | (present(upper) & ~highest.valid),
            floating=isinstance(field_type, FloatType | DoubleType),
        )


def _bools(column: pa.Array) -> Mask:
    return np.asarray(column.fill_null(False).to_numpy(zero_copy_only=False), dtype=np.bool_)


def _is_null(field: FieldSummaries, _: BoundPredicate) -> Mask:
    return field.contains_null


def _not_null(field: FieldSummaries, _: BoundPredicate) -> Mask:
    return ~field.all_null


def _is_nan(field: FieldSummaries, _: BoundPredicate) -> Mask:
    return ~(field.nan_known & ~field.contains_nan) & ~field.all_null


def _not_nan(field: FieldSummaries, _: BoundPredicate) -> Mask:
    return ~(field.contains_nan & ~field.contains_null & ~field.lower.valid)


def _lt(field: FieldSummaries, pred: BoundPredicate) -> Mask:
    return field.lower.lt(pred.literal)


def _lt_eq(field: FieldSummaries, pred: BoundPredicate) -> Mask:
    return field.lower.le(pred.literal)


def _gt(field: FieldSummaries, pred: BoundPredicate) -> Mask:
    return field.upper.valid & ~field.upper.le(pred.literal)


def _gt_eq(field: FieldSummaries, pred: BoundPredicate) -> Mask:
    return field.upper.valid & ~field.upper.lt(pred.literal)


def _eq(field: FieldSummaries, pred: BoundPredicate) -> Mask:
    return _lt_eq(field, pred) & _gt_eq(field, pred)


def _not_eq(field: FieldSummaries, pred: BoundPredicate) -> Mask:
    return ~(field.unique & field.lower.eq(pred.literal))


def _in(field: FieldSummaries, pred: BoundPredicate) -> Mask:
    if len(pred.literals) > IN_PREDICATE_LIMIT:
        return field.lower.valid
    result = np.zeros(len(field.lower.valid), dtype=np.bool_)
    for lit in pred.literals:
        result |= field.lower.le(lit) & ~field.upper.lt(lit)
    return result


def _not_in(field: FieldSummaries, pred: BoundPredicate) -> Mask:
    return ~(field.unique & field.lower.is_in(pred.literals))


def _starts_with(field: FieldSummaries, pred: BoundPredicate) -> Mask:
    prefix = pred.literal.value
    low_enough = field.lower.le(pred.literal) | field.lower.starts_with(prefix)
    return low_enough & ~field.upper.lt(pred.literal)


def _not_starts_with(field: FieldSummaries, pred: BoundPredicate) -> Mask:
    prefix = pred.literal.value
    all_start = field.lower.starts_with(prefix) & field.upper.starts_with(prefix)
    return field.contains_null | ~all_start


_RULES: dict[Operation, Callable[[FieldSummaries, BoundPredicate], Mask]] = {
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
