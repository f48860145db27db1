"""Projections: predicates on columns become predicates on partition values.

An inclusive projection matches every partition that may hold a matching row; a strict one only partitions
whose every row matches. The rules of each transform are those of Iceberg Java's ``Transform.project`` and
``projectStrict``, including the widening of time transforms before 1970. Partition fields are addressed by
their position in the spec at hand, never by name or by another spec's position.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from pyiceberg.transforms import (
    BucketTransform,
    DayTransform,
    IdentityTransform,
    TruncateTransform,
    VoidTransform,
)
from pyiceberg.types import DateType, DecimalType, IntegerType

from planning_health.planning.expressions import (
    PREFIXES,
    SETS,
    UNARY,
    BoundPredicate,
    BoundReference,
    Expression,
    Operation,
    and_,
    bind_predicate,
    or_,
    rewrite_not,
    visit,
)
from planning_health.planning.literals import Literal, decimal_of, literal, unscaled_of
from planning_health.planning.transforms import TIME_TRANSFORMS, result_type, transform_function, wrap

if TYPE_CHECKING:
    from pyiceberg.partitioning import PartitionSpec
    from pyiceberg.schema import Schema
    from pyiceberg.transforms import Transform
    from pyiceberg.types import IcebergType


@dataclass(frozen=True, slots=True)
class Projected:
    """A predicate on a partition field before its literals take the field's type."""

    op: Operation
    literals: tuple[Literal, ...] = ()


class BoundSpec:
    """One partition spec seen through one schema: the types of its fields and who comes from which column."""

    def __init__(self, spec: PartitionSpec, schema: Schema) -> None:
        self.spec = spec
        self.spec_id = spec.spec_id
        self.field_types: tuple[IcebergType, ...] = tuple(
            result_type(field.transform, _source_type(schema, field.source_id)) for field in spec.fields
        )

    def __len__(self) -> int:
        return len(self.field_types)

    @property
    def is_unpartitioned(self) -> bool:
        """The spec has no field, or only void ones."""
        return all(isinstance(field.transform, VoidTransform) for field in self.spec.fields)

    @cached_property
    def references(self) -> tuple[BoundReference, ...]:
        """The partition fields as references, in the spec's order."""
        return tuple(
            BoundReference(field.field_id, field.name, self.field_types[position], position=position)
            for position, field in enumerate(self.spec.fields)
        )

    @cached_property
    def positions_by_source(self) -> dict[int, list[int]]:
        """Positions of the partition fields of each source column."""
        positions: dict[int, list[int]] = {}
        for position, field in enumerate(self.spec.fields):
            positions.setdefault(field.source_id, []).append(position)
        return positions

    def transform(self, position: int) -> Transform[Any, Any]:
        """The transform of the field at a position."""
        return self.spec.fields[position].transform

    def project(self, pred: BoundPredicate, position: int, *, strict: bool) -> Expression | None:
        """Project a column predicate onto one partition field; None where the transform cannot."""
        projected = project(self.transform(position), pred, strict=strict)
        if projected is None:
            return None
        return bind_predicate(projected.op, self.references[position], projected.literals)


def _source_type(schema: Schema, source_id: int) -> IcebergType | None:
    try:
        return schema.find_type(source_id)
    except ValueError:
        return None


def inclusive_projection(expr: Expression, spec: BoundSpec) -> Expression:
    """Project a bound row expression onto a spec: true for every partition that may hold a match."""

    def leaf(pred: BoundPredicate) -> Expression:
        positions = spec.positions_by_source.get(pred.ref.field_id, ())
        projections = (spec.project(pred, position, strict=False) for position in positions)
        return and_(*(projection for projection in projections if projection is not None))

    return visit(rewrite_not(expr), leaf)


def strict_projection(expr: Expression, spec: BoundSpec) -> Expression:
    """Project a bound row expression onto a spec: true only for partitions whose every row matches."""

    def leaf(pred: BoundPredicate) -> Expression:
        positions = spec.positions_by_source.get(pred.ref.field_id, ())
        projections = (spec.project(pred, position, strict=True) for position in positions)
        return or_(*(projection for projection in projections if projection is not None))

    return visit(rewrite_not(expr), leaf)


def project(transform: Transform[Any, Any], pred: BoundPredicate, *, strict: bool) -> Projected | None:
    """Apply a transform's projection rule to one bound predicate.

    Returns:
        The predicate on the partition value, or None where the transform cannot project it.
    """
    if isinstance(transform, IdentityTransform):
        return Projected(pred.op, pred.literals)
    rule = next((rule for kinds, rule in _RULES if isinstance(transform, kinds)), None)
    if rule is None:  # void and unknown transforms say nothing about their source
        return None
    if pred.op in UNARY:
        return Projected(pred.op)
    return rule(transform, pred, strict)


def _bucket(transform: BucketTransform[Any], pred: BoundPredicate, strict: bool) -> Projected | None:
    projectable = (Operation.NOT_EQ, Operation.NOT_IN) if strict else (Operation.EQ, Operation.IN)
    if pred.op not in projectable:
        return None
    return _transformed(pred.op, pred, transform_function(transform, pred.ref.type))


def _transformed(op: Operation, pred: BoundPredicate, function: Callable[[Any], Any]) -> Projected:
    return Projected(op, tuple(literal(function(lit.value)) for lit in pred.literals))


def _truncate(transform: TruncateTransform[Any], pred: BoundPredicate, strict: bool) -> Projected | None:
    function = transform_function(transform, pred.ref.type)
    if pred.op in PREFIXES:
        return _truncate_prefix(pred, transform.width, function, strict)
    if pred.op in SETS:
        return _set(pred, function, strict)
    return _comparison(pred, function, strict)


def _set(pred: BoundPredicate, function: Callable[[Any], Any], strict: bool) -> Projected | None:
    projectable = Operation.NOT_IN if strict else Operation.IN
    return _transformed(pred.op, pred, function) if pred.op is projectable else None


def _truncate_prefix(
    pred: BoundPredicate, width: int, function: Callable[[Any], Any], strict: bool
) -> Projected | None:
    prefix = pred.literal.value
    length = len(prefix.encode("utf-16-le")) // 2  # Java measures the prefix in UTF-16 units
    if length < width:
        return Projected(pred.op, pred.literals)
    negated = pred.op is Operation.NOT_STARTS_WITH
    if length == width:
        return Projected(Operation.NOT_EQ if negated else Operation.EQ, pred.literals)
    # a longer prefix can only rule partitions in strictly when negated, and out when not
    return Projected(pred.op, (literal(function(prefix)),)) if negated is strict else None


_INCLUSIVE = {
    Operation.LT: (Operation.LT_EQ, -1),
    Operation.LT_EQ: (Operation.LT_EQ, 0),
    Operation.GT: (Operation.GT_EQ, 1),
    Operation.GT_EQ: (Operation.GT_EQ, 0),
    Operation.EQ: (Operation.EQ, 0),
}
_STRICT = {
    Operation.LT: (Operation.LT, 0),
    Operation.LT_EQ: (Operation.LT, 1),
    Operation.GT: (Operation.GT, 0),
    Operation.GT_EQ: (Operation.GT, -1),
    Operation.NOT_EQ: (Operation.NOT_EQ, 0),
}


def _comparison(pred: BoundPredicate, function: Callable[[Any], Any], strict: bool) -> Projected | None:
    """Project a comparison; on discrete types an exclusive bound first moves to the next value."""
    rule = (_STRICT if strict else _INCLUSIVE).get(pred.op)
    if rule is None:
        return None
    op, step = rule
    return Projected(op, (literal(function(_step(pred.literal.value, step, pred.ref.type))),))


def _step(value: Any, step: int, value_type: IcebergType) -> Any:
    if isinstance(value, str | bytes) or step == 0:
        return value
    if isinstance(value_type, DecimalType):
        unscaled, scale = unscaled_of(value)
        return decimal_of(unscaled + step, scale)
    bits = 32 if isinstance(value_type, IntegerType | DateType) else 64
    return wrap(value + step, bits)


def _time(transform: Transform[Any, Any], pred: BoundPredicate, strict: bool) -> Projected | None:
    function = transform_function(transform, pred.ref.type)
    projected = _set(pred, function, strict) if pred.op in SETS else _comparison(pred, function, strict)
    if projected is None or (isinstance(transform, DayTransform) and isinstance(pred.ref.type, DateType)):
        return projected
    return _fix_strict(projected) if strict else _fix_inclusive(projected)


def _fix_inclusive(projected: Projected) -> Projected:
    """Widen a time projection before 1970, where old writers rounded toward zero."""
    values = [lit.value for lit in projected.literals]
    if projected.op in SETS or projected.op is Operation.EQ:
        return _with_successors(projected, values, Operation.IN)
    if projected.op is Operation.LT_EQ and values[0] < 0:
        return Projected(projected.op, (literal(values[0] + 1),))
    return projected


def _fix_strict(projected: Projected) -> Projected:
    """Narrow a strict time projection before 1970, for the same reason."""
    values = [lit.value for lit in projected.literals]
    if projected.op in SETS or projected.op is Operation.NOT_EQ:
        return _with_successors(projected, values, Operation.NOT_IN)
    if projected.op is Operation.GT and values[0] <= 0:
        return Projected(projected.op, (literal(values[0] + 1),))
    return projected


def _with_successors(projected: Projected, values: list[int], op: Operation) -> Projected:
    if all(value >= 0 for value in values):
        return projected
    widened = dict.fromkeys(v for value in values for v in ((value, value + 1) if value < 0 else (value,)))
    return Projected(op, tuple(literal(value) for value in widened))


_RULES: tuple[tuple[Any, Callable[[Any, BoundPredicate, bool], Projected | None]], ...] = (
    (BucketTransform, _bucket),
    (TruncateTransform, _truncate),
    (TIME_TRANSFORMS, _time),
)
