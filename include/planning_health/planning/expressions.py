"""Predicates on a table's columns: building them, binding them to a schema, pushing NOT to the leaves.

The classes and rules are those of ``org.apache.iceberg.expressions``. Constructors simplify constants as
``Expressions.and/or/not`` do, so that "no filter" is always the one object ``ALWAYS_TRUE``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import reduce
from typing import TYPE_CHECKING, Any

from pyiceberg.types import (
    DoubleType,
    FloatType,
    ListType,
    MapType,
    NestedField,
    StringType,
    StructType,
    UnknownType,
)

from planning_health.errors import InputError
from planning_health.planning.literals import Literal, OutOfRange, convert, identity_key, literal, to_json_value
from planning_health.suggestions import did_you_mean, some_of

if TYPE_CHECKING:
    from pyiceberg.schema import Schema
    from pyiceberg.types import IcebergType


class Operation(StrEnum):
    """A predicate's operator; the values are the names in Iceberg's JSON form."""

    IS_NULL = "is-null"
    NOT_NULL = "not-null"
    IS_NAN = "is-nan"
    NOT_NAN = "not-nan"
    LT = "lt"
    LT_EQ = "lt-eq"
    GT = "gt"
    GT_EQ = "gt-eq"
    EQ = "eq"
    NOT_EQ = "not-eq"
    IN = "in"
    NOT_IN = "not-in"
    STARTS_WITH = "starts-with"
    NOT_STARTS_WITH = "not-starts-with"

    def negate(self) -> Operation:
        """Return the operator that holds exactly where this one does not."""
        return _NEGATIONS[self]


UNARY = frozenset({Operation.IS_NULL, Operation.NOT_NULL, Operation.IS_NAN, Operation.NOT_NAN})
SETS = frozenset({Operation.IN, Operation.NOT_IN})
PREFIXES = frozenset({Operation.STARTS_WITH, Operation.NOT_STARTS_WITH})

_NEGATION_PAIRS = (
    (Operation.IS_NULL, Operation.NOT_NULL),
    (Operation.IS_NAN, Operation.NOT_NAN),
    (Operation.LT, Operation.GT_EQ),
    (Operation.LT_EQ, Operation.GT),
    (Operation.EQ, Operation.NOT_EQ),
    (Operation.IN, Operation.NOT_IN),
    (Operation.STARTS_WITH, Operation.NOT_STARTS_WITH),
)
_NEGATIONS = {a: b for pair in _NEGATION_PAIRS for a, b in (pair, pair[::-1])}


class Expression:
    """Base of all expressions."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class AlwaysTrue(Expression):
    """Every row matches."""

    def __str__(self) -> str:
        return "true"


@dataclass(frozen=True, slots=True)
class AlwaysFalse(Expression):
    """No row matches."""

    def __str__(self) -> str:
        return "false"


@dataclass(frozen=True, slots=True)
class And(Expression):
    """Both sides hold."""

    left: Expression
    right: Expression

    def __str__(self) -> str:
        return f"({self.left} and {self.right})"


@dataclass(frozen=True, slots=True)
class Or(Expression):
    """One of the sides holds."""

    left: Expression
    right: Expression

    def __str__(self) -> str:
        return f"({self.left} or {self.right})"


@dataclass(frozen=True, slots=True)
class Not(Expression):
    """The child does not hold."""

    child: Expression

    def __str__(self) -> str:
        return f"not({self.child})"


@dataclass(frozen=True, slots=True)
class UnboundPredicate(Expression):
    """A predicate on a column that is still a name.

    Attributes:
        op: the operator.
        name: the column's full name, nested names with dots.
        literals: none for unary operators, one for comparisons, any number for IN and NOT IN.
    """

    op: Operation
    name: str
    literals: tuple[Literal, ...] = ()

    def __str__(self) -> str:
        return _format(self.op, self.name, self.literals)


@dataclass(frozen=True, slots=True)
class BoundReference:
    """A column (or partition field) that a predicate was bound to.

    Attributes:
        field_id: the Iceberg field id.
        name: the name it was asked by.
        type: the field's type.
        required: the field and all its ancestors are required, so that it is never null.
        position: index in the partition struct; -1 for a table column.
    """

    field_id: int
    name: str
    type: IcebergType
    required: bool = False
    position: int = -1


@dataclass(frozen=True, slots=True)
class BoundPredicate(Expression):
    """A predicate whose literals have the column's type."""

    op: Operation
    ref: BoundReference
    literals: tuple[Literal, ...] = ()

    def __str__(self) -> str:
        return _format(self.op, self.ref.name, self.literals)

    @property
    def literal(self) -> Literal:
        """The single literal of a comparison."""
        return self.literals[0]


ALWAYS_TRUE = AlwaysTrue()
ALWAYS_FALSE = AlwaysFalse()

_SYMBOLS = {
    Operation.LT: "<",
    Operation.LT_EQ: "<=",
    Operation.GT: ">",
    Operation.GT_EQ: ">=",
    Operation.EQ: "=",
    Operation.NOT_EQ: "!=",
    Operation.STARTS_WITH: "starts with",
    Operation.NOT_STARTS_WITH: "not starts with",
}
_UNARY_WORDS = {
    Operation.IS_NULL: "is null",
    Operation.NOT_NULL: "is not null",
    Operation.IS_NAN: "is nan",
    Operation.NOT_NAN: "is not nan",
}


def _format(op: Operation, name: str, literals: tuple[Literal, ...]) -> str:
    if op in UNARY:
        return f"{name} {_UNARY_WORDS[op]}"
    if op in SETS:
        word = "in" if op is Operation.IN else "not in"
        return f"{name} {word} ({', '.join(map(str, literals))})"
    return f"{name} {_SYMBOLS[op]} {literals[0]}"


def and_(*children: Expression) -> Expression:
    """Join expressions by AND, simplifying constants; of nothing it is true."""
    return _joined(_and, children, ALWAYS_TRUE)


_LONGEST_CHAIN = 32


def _joined(
    join: Callable[[Expression, Expression], Expression], children: tuple[Expression, ...], nothing: Expression
) -> Expression:
    """Join from left to right as Iceberg does; in halves where a chain would become a deep tree."""
    if len(children) > _LONGEST_CHAIN:
        middle = len(children) // 2
        return join(_joined(join, children[:middle], nothing), _joined(join, children[middle:], nothing))
    return reduce(join, children, nothing)


def depth(expr: Expression) -> int:
    """Return the number of levels of an expression; 1 for a predicate."""
    deepest = 0
    pending = [(expr, 1)]
    while pending:
        node, level = pending.pop()
        deepest = max(deepest, level)
        match node:
            case And(left, right) | Or(left, right):
                pending += [(left, level + 1), (right, level + 1)]
            case Not(child):
                pending.append((child, level + 1))
    return deepest


def _and(left: Expression, right: Expression) -> Expression:
    if isinstance(left, AlwaysFalse) or isinstance(right, AlwaysFalse):
        return ALWAYS_FALSE
    if isinstance(left, AlwaysTrue):
        return right
    return left if isinstance(right, AlwaysTrue) else And(left, right)


def or_(*children: Expression) -> Expression:
    """Join expressions by OR, simplifying constants; of nothing it is false."""
    return _joined(_or, children, ALWAYS_FALSE)


def _or(left: Expression, right: Expression) -> Expression:
    if isinstance(left, AlwaysTrue) or isinstance(right, AlwaysTrue):
        return ALWAYS_TRUE
    if isinstance(left, AlwaysFalse):
        return right
    return left if isinstance(right, AlwaysFalse) else Or(left, right)


def not_(child: Expression) -> Expression:
    """Negate an expression, simplifying constants and double negation."""
    match child:
        case AlwaysTrue():
            return ALWAYS_FALSE
        case AlwaysFalse():
            return ALWAYS_TRUE
        case Not(inner):
            return inner
    return Not(child)


def predicate(op: Operation, name: str, *values: object) -> UnboundPredicate:
    """Build a predicate on a named column from Python values.

    Raises:
        InputError: a value cannot be a literal, or the operator takes another number of values.
    """
    literals = tuple(literal(value) for value in values)
    if op not in SETS and len(literals) != (0 if op in UNARY else 1):
        raise InputError(f"{op} on {name!r} got {len(literals)} values")
    return UnboundPredicate(op, name, literals)


def visit(expr: Expression, leaf: Callable[[Any], Expression]) -> Expression:
    """Rebuild an expression bottom-up, replacing each predicate by ``leaf(predicate)``."""
    match expr:
        case And(left, right):
            return _and(visit(left, leaf), visit(right, leaf))
        case Or(left, right):
            return _or(visit(left, leaf), visit(right, leaf))
        case Not(child):
            return not_(visit(child, leaf))
        case UnboundPredicate() | BoundPredicate():
            return leaf(expr)
    return expr


def leaves(expr: Expression) -> Iterator[UnboundPredicate | BoundPredicate]:
    """Yield the predicates of an expression from left to right."""
    match expr:
        case And(left, right) | Or(left, right):
            yield from leaves(left)
            yield from leaves(right)
        case Not(child):
            yield from leaves(child)
        case UnboundPredicate() | BoundPredicate():
            yield expr


def negate(expr: Expression) -> Expression:
    """Return the expression's negation without a NOT node above its leaves."""
    match expr:
        case And(left, right):
            return _or(negate(left), negate(right))
        case Or(left, right):
            return _and(negate(left), negate(right))
        case UnboundPredicate(op, name, literals):
            return UnboundPredicate(op.negate(), name, literals)
        case BoundPredicate(op, ref, literals):
            return BoundPredicate(op.negate(), ref, literals)
    return not_(expr)


def rewrite_not(expr: Expression) -> Expression:
    """Push every NOT down to the predicates."""
    match expr:
        case And(left, right):
            return _and(rewrite_not(left), rewrite_not(right))
        case Or(left, right):
            return _or(rewrite_not(left), rewrite_not(right))
        case Not(child):
            return negate(rewrite_not(child))
    return expr


def bind(expr: Expression, schema: Schema, *, case_sensitive: bool = True) -> Expression:
    """Resolve names to fields and convert literals to the fields' types, as ``Binder.bind``.

    Raises:
        InputError: an unknown column, or a literal that the column's type does not take.
    """
    resolve = ReferenceResolver(schema, case_sensitive=case_sensitive)
    return visit(expr, lambda leaf: bind_predicate(leaf.op, resolve(leaf.name), leaf.literals))


class ReferenceResolver:
    """Finds the fields of one schema by name; callable: ``resolver(name) -> BoundReference``."""

    def __init__(self, schema: Schema, *, case_sensitive: bool = True) -> None:
        self._schema = schema
        self._case_sensitive = case_sensitive
        self._parents = _parent_fields(schema.as_struct())

    def __call__(self, name: str) -> BoundReference:
        """Return the reference; raises InputError for a name that the schema does not have."""
        try:
            field = self._schema.find_field(name, case_sensitive=self._case_sensitive)
        except ValueError as error:
            near = did_you_mean(name, self._schema.column_names)
            known = some_of(field.name for field in self._schema.fields)
            raise InputError(f"unknown column {name!r}{near} The table has {known}") from error
        return BoundReference(field.field_id, name, field.field_type, self._never_null(field))

    def _never_null(self, field: NestedField) -> bool:
        current: NestedField | None = field
        while current is not None:
            if not current.required:
                return False
            current = self._parents.get(current.field_id)
        return True


def _parent_fields(struct: StructType) -> Mapping[int, NestedField]:
    parents: dict[int, NestedField] = {}
    pending: list[tuple[NestedField, NestedField | None]] = [(field, None) for field in struct.fields]
    while pending:
        field, parent = pending.pop()
        if parent is not None:
            parents[field.field_id] = parent
        pending.extend((child, field) for child in _children(field.field_type))
    return parents


def _children(field_type: IcebergType) -> Iterable[NestedField]:
    match field_type:
        case StructType():
            return field_type.fields
        case ListType():
            return (field_type.element_field,)
        case MapType():
            return (field_type.key_field, field_type.value_field)
    return ()


def bind_predicate(op: Operation, ref: BoundReference, literals: tuple[Literal, ...]) -> Expression:
    """Bind one predicate; constants replace it where the type alone decides the answer.

    Raises:
        InputError: the operator or a literal does not fit the field's type.
    """
    if op in UNARY:
        return _bind_unary(op, ref)
    if op in SETS:
        return _bind_set(op, ref, literals)
    if op in PREFIXES and not isinstance(ref.type, StringType):
        raise InputError(f"{ref.name} {_SYMBOLS[op]}: needs a string column, {ref.name!r} is {ref.type}")
    converted = _converted(ref, literals[0])
    if isinstance(converted, OutOfRange):
        return _out_of_range(op, converted)
    return BoundPredicate(op, ref, (converted,))


def _bind_unary(op: Operation, ref: BoundReference) -> Expression:
    if op in (Operation.IS_NAN, Operation.NOT_NAN):
        if not isinstance(ref.type, FloatType | DoubleType):
            raise InputError(f"{_UNARY_WORDS[op]} needs a float or double column, {ref.name!r} is {ref.type}")
        return BoundPredicate(op, ref)
    if ref.required:
        return ALWAYS_FALSE if op is Operation.IS_NULL else ALWAYS_TRUE
    if isinstance(ref.type, UnknownType):
        return ALWAYS_TRUE if op is Operation.IS_NULL else ALWAYS_FALSE
    return BoundPredicate(op, ref)


def _bind_set(op: Operation, ref: BoundReference, literals: tuple[Literal, ...]) -> Expression:
    converted = (_converted(ref, lit) for lit in literals)
    kept = tuple({identity_key(lit): lit for lit in converted if not isinstance(lit, OutOfRange)}.values())
    if not kept:
        return ALWAYS_FALSE if op is Operation.IN else ALWAYS_TRUE
    if len(kept) == 1:
        return BoundPredicate(Operation.EQ if op is Operation.IN else Operation.NOT_EQ, ref, kept)
    return BoundPredicate(op, ref, kept)


def _converted(ref: BoundReference, lit: Literal) -> Literal | OutOfRange:
    converted = convert(lit, ref.type)
    if converted is None:
        raise InputError(f"{lit} ({lit.kind}) is no value for column {ref.name!r} of type {ref.type}")
    return converted


_TRUE_ABOVE = frozenset({Operation.LT, Operation.LT_EQ, Operation.NOT_EQ})
_TRUE_BELOW = frozenset({Operation.GT, Operation.GT_EQ, Operation.NOT_EQ})


def _out_of_range(op: Operation, where: OutOfRange) -> Expression:
    true_for = _TRUE_ABOVE if where is OutOfRange.ABOVE_MAX else _TRUE_BELOW
    return ALWAYS_TRUE if op in true_for else ALWAYS_FALSE


def to_iceberg_json(expr: Expression) -> Any:
    """Return the expression as Iceberg's ``ExpressionParser`` reads it (a value for ``json.dumps``)."""
    match expr:
        case AlwaysTrue():
            return True
        case AlwaysFalse():
            return False
        case Not(child):
            return {"type": "not", "child": to_iceberg_json(child)}
        case And(left, right):
            return {"type": "and", "left": to_iceberg_json(left), "right": to_iceberg_json(right)}
        case Or(left, right):
            return {"type": "or", "left": to_iceberg_json(left), "right": to_iceberg_json(right)}
        case UnboundPredicate(op, name, literals):
            return _predicate_json(op, name, literals)
        case BoundPredicate(op, ref, literals):
            return _predicate_json(op, ref.name, literals)
    raise TypeError(f"not an expression: {expr!r}")


def _predicate_json(op: Operation, name: str, literals: tuple[Literal, ...]) -> dict[str, Any]:
    node: dict[str, Any] = {"type": str(op), "term": name}
    if op in SETS:
        node["values"] = [to_json_value(lit) for lit in literals]
    elif op not in UNARY:
        node["value"] = to_json_value(literals[0])
    return node


def from_iceberg_json(node: Any) -> Expression:
    """Read an expression from Iceberg's JSON form.

    Raises:
        InputError: the document is no expression.
    """
    if isinstance(node, bool):
        return ALWAYS_TRUE if node else ALWAYS_FALSE
    if not isinstance(node, dict):
        raise InputError(f"not an Iceberg expression: {node!r}")
    kind = str(node.get("type", "")).lower().replace("_", "-")
    try:
        return _node_from_json(kind, node)
    except KeyError as error:
        raise InputError(f"expression {kind!r} lacks {error}") from error


def _node_from_json(kind: str, node: dict[str, Any]) -> Expression:
    match kind:
        case "literal":
            return ALWAYS_TRUE if node["value"] else ALWAYS_FALSE
        case "not":
            return not_(from_iceberg_json(node["child"]))
        case "and" | "or":
            join = _and if kind == "and" else _or
            return join(from_iceberg_json(node["left"]), from_iceberg_json(node["right"]))
    if kind not in set(Operation):
        raise InputError(f"unknown operation {kind!r} in an Iceberg expression")
    op = Operation(kind)
    if op in UNARY:
        return predicate(op, _term_name(node["term"]))
    values = node["values"] if op in SETS else [node["value"]]
    if not isinstance(values, list):
        raise InputError(f"expression {kind!r}: expected a list of values")
    return predicate(op, _term_name(node["term"]), *map(_json_literal, values))


def _term_name(term: Any) -> str:
    if isinstance(term, dict) and term.get("type") == "reference":
        term = term.get("term")
    if not isinstance(term, str):
        raise InputError(f"cannot plan with the term {term!r}: expected a column name")
    return term


def _json_literal(value: Any) -> Any:
    return value["value"] if isinstance(value, dict) and value.get("type") == "literal" else value
