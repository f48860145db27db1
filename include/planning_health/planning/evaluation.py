"""Evaluating a bound expression over many rows at once: masks at the leaves, joined upward."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from planning_health.planning.comparable import Mask
from planning_health.planning.expressions import (
    AlwaysFalse,
    AlwaysTrue,
    And,
    BoundPredicate,
    Expression,
    Or,
)

IN_PREDICATE_LIMIT = 200
"""Beyond this many literals Iceberg does not compare an IN with bounds."""


def evaluate(expr: Expression, leaf: Callable[[BoundPredicate], Mask], rows: int) -> Mask:
    """Evaluate an expression for ``rows`` rows at once.

    Args:
        expr: a bound expression, NOT already pushed down to its leaves.
        leaf: returns the mask of one predicate.
        rows: length of every mask.
    """
    match expr:
        case And(left, right):
            mask = evaluate(left, leaf, rows)
            return mask & evaluate(right, leaf, rows) if mask.any() else mask
        case Or(left, right):
            mask = evaluate(left, leaf, rows)
            return mask if mask.all() else mask | evaluate(right, leaf, rows)
        case BoundPredicate():
            return leaf(expr)
        case AlwaysTrue() | AlwaysFalse():
            return np.full(rows, isinstance(expr, AlwaysTrue), dtype=np.bool_)
    raise TypeError(f"a bound expression without NOT is evaluated, not {expr}")
