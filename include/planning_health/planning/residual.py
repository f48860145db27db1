"""Residuals: what of the filter remains to be checked row by row once a file's partition value is known.

The rules are those of ``ResidualEvaluator``: a predicate becomes true where its strict projection holds for
the partition, false where its inclusive projection does not, and stays itself elsewhere.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from planning_health.planning.comparable import Ints, Mask
from planning_health.planning.expressions import (
    ALWAYS_FALSE,
    ALWAYS_TRUE,
    AlwaysFalse,
    AlwaysTrue,
    BoundPredicate,
    Expression,
    leaves,
    visit,
)

if TYPE_CHECKING:
    from planning_health.planning.partitions import PartitionTuples
    from planning_health.planning.projection import BoundSpec

_KEEP, _TRUE, _FALSE = 0, 1, 2


class ResidualEvaluator:
    """Finds the residuals of one bound filter for the partition tuples of one spec."""

    def __init__(self, spec: BoundSpec, expr: Expression) -> None:
        self._spec = spec
        self._expr = expr

    def residuals(self, tuples: PartitionTuples) -> tuple[list[Expression], Ints]:
        """Return (distinct residuals, for each distinct tuple the index of its residual)."""
        predicates = list(leaves(self._expr))
        if not predicates or not len(tuples):
            return [self._expr], np.zeros(len(tuples), dtype=np.int64)
        states = np.stack([self._states(pred, tuples) for pred in predicates], axis=1)  # type: ignore[arg-type]
        distinct, index = np.unique(states, axis=0, return_inverse=True)
        residuals = [self._rebuild(row) for row in distinct]
        return residuals, index.reshape(-1).astype(np.int64)

    def _rebuild(self, states: Ints) -> Expression:
        outcome = iter(states)

        def leaf(pred: BoundPredicate) -> Expression:
            state = next(outcome)
            return pred if state == _KEEP else ALWAYS_TRUE if state == _TRUE else ALWAYS_FALSE

        return visit(self._expr, leaf)

    def _states(self, pred: BoundPredicate, tuples: PartitionTuples) -> Ints:
        """Decide a predicate for every tuple, field by field in the spec's order."""
        states = np.full(len(tuples), _KEEP, dtype=np.int64)
        for position in self._spec.positions_by_source.get(pred.ref.field_id, ()):
            open_rows = (states == _KEEP) & ~tuples.undecodable(position)
            holds = self._mask(pred, position, tuples, strict=True, default=False)
            states[open_rows & holds] = _TRUE
            possible = self._mask(pred, position, tuples, strict=False, default=True)
            states[open_rows & ~holds & ~possible] = _FALSE
        return states

    def _mask(
        self, pred: BoundPredicate, position: int, tuples: PartitionTuples, *, strict: bool, default: bool
    ) -> Mask:
        projected = self._spec.project(pred, position, strict=strict)
        if isinstance(projected, BoundPredicate):
            return tuples.matches(projected)
        if isinstance(projected, AlwaysTrue | AlwaysFalse):
            default = isinstance(projected, AlwaysTrue)
        return np.full(len(tuples), default, dtype=np.bool_)
