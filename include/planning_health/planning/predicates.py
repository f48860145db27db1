"""Predicates as a user writes them in Spark SQL, turned into Iceberg expressions as Spark's push-down does.

Spark splits a WHERE clause into conjuncts, adds IS NOT NULL for the columns that a conjunct needs, moves casts
to the constants, and hands Iceberg those conjuncts that translate whole. The others stay in the query: they are
named here and prune nothing (beyond the IS NOT NULL that Spark infers from them). The rules were read off what
Spark 4.1 pushes down, and the tests compare with it.
"""

from __future__ import annotations

import datetime as dt
import math
import re
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import sqlglot
from pyiceberg.types import (
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IcebergType,
    IntegerType,
    LongType,
    StringType,
    TimestampType,
    TimestamptzType,
)
from sqlglot import exp
from sqlglot.errors import SqlglotError

from planning_health.errors import InputError
from planning_health.planning.expressions import (
    ALWAYS_FALSE,
    ALWAYS_TRUE,
    BoundReference,
    Expression,
    Operation,
    ReferenceResolver,
    UnboundPredicate,
    and_,
    depth,
    or_,
)
from planning_health.planning.literal_coercion import Always, MismatchError, coerce, timestamp_literal
from planning_health.planning.literals import Kind, Literal
from planning_health.planning.spec_text import partition_field_hint
from planning_health.planning.sql_constants import (
    Clock,
    ConstantFolder,
    NotConstantError,
    compare_constants,
    parse_date,
)

if TYPE_CHECKING:
    from pyiceberg.schema import Schema

    from planning_health.metadata.model import TableInfo


@dataclass(frozen=True)
class ParsedPredicate:
    """A WHERE clause as Iceberg gets it.

    Attributes:
        where: the text.
        expression: what is pushed down to Iceberg.
        not_pushed_down: the parts that only Spark evaluates, as SQL.
        columns: full names of all columns that the text mentions.
    """

    where: str
    expression: Expression
    not_pushed_down: tuple[str, ...]
    columns: frozenset[str]


def parse_where(
    where: str,
    schema: Schema,
    *,
    zone: str = "UTC",
    now: dt.datetime | None = None,
    case_sensitive: bool = False,
    info: TableInfo | None = None,
) -> ParsedPredicate:
    """Parse a predicate in Spark SQL against a table's schema.

    Args:
        where: the predicate, without the word WHERE.
        schema: the schema that the scan binds to.
        zone: the session time zone, for texts and dates compared with timestamps.
        now: the current time (aware), for ``current_date()`` and the like; the real one by default.
        case_sensitive: whether column names match by case (Spark's default is that they do not).
        info: the table, to tell its partition fields from unknown columns.

    Raises:
        InputError: the text does not parse, names an unknown column, or compares types that do not compare.
    """
    clock = Clock.of(zone, now)
    with _faults_as_input_errors(where):
        tree = _parse(where)
        translator = _Translator(schema, clock, case_sensitive=case_sensitive)
        columns = frozenset(_resolved(translator, column, where, info).name for column in _column_nodes(tree))
        try:
            expression, rest = translator.push_down(tree)
        except MismatchError as error:
            if date := _bare_date(tree):
                raise InputError(f"{error}; a date is written DATE'{date}'") from error
            raise
        if depth(expression) > _DEEPEST:
            raise RecursionError
    return ParsedPredicate(where, expression, tuple(rest), columns)


_RECURSION_LIMIT = 10_000
_RAISED_LIMIT = threading.RLock()
"""Python's recursion limit holds for all threads: one at a time raises it and puts it back."""
_DEEPEST = 200
"""Levels of a pushed expression; all that walk it later do so under Python's usual recursion limit."""
_LONGEST_ECHO = 200


@contextmanager
def _faults_as_input_errors(where: str) -> Iterator[None]:
    """Let deep predicates be walked, and turn whatever fails inside into one short line that names the predicate."""
    with _RAISED_LIMIT:
        limit = sys.getrecursionlimit()
        sys.setrecursionlimit(max(limit, _RECURSION_LIMIT))
        try:
            yield
        except InputError as error:
            raise InputError(_shortened(str(error), 2 * _LONGEST_ECHO)) from error
        except RecursionError as error:
            raise InputError(f"predicate {_echo(where)} is nested too deeply") from error
        except (ArithmeticError, ValueError, TypeError, AttributeError, LookupError) as error:
            raise InputError(f"predicate {_echo(where)} cannot be evaluated") from error
        finally:
            sys.setrecursionlimit(limit)


def _resolved(translator: _Translator, column: exp.Expression, where: str, info: TableInfo | None) -> BoundReference:
    """The column; where there is none, the fault tells what the name perhaps is: a partition field, or a text."""
    try:
        return translator.reference(column)
    except InputError as error:
        name = ".".join(_column_path(column) or ())
        if info is not None and (hint := partition_field_hint(info, name)):
            raise InputError(f"unknown column {name!r}: {hint}") from error
        text = _bare_text(name, where)
        if text and (text != name or f"{name!r}." in str(error)):  # a lone word may be a column's name, misspelt
            raise InputError(f"unknown column {name!r}: a text literal needs quotes: '{text}'") from error
        raise


def _bare_text(name: str, where: str) -> str | None:
    """A word or words with hyphens that begin with a name, alone on the right side of a comparison."""
    ends = r"(?=\s*(?:$|[),]|\s(?:and|or)\b))"
    found = re.search(rf"(?:[=<>]|\bin\s*\()\s*({re.escape(name)}(?:-\w+)*){ends}", where, re.IGNORECASE)
    return found[1] if found else None


def _bare_date(tree: exp.Expression) -> str | None:
    """A date that stands without quotes, and so is a subtraction of numbers."""
    for node in _nodes(tree):
        if isinstance(node, exp.Sub) and isinstance(node.this, exp.Sub):
            text = "-".join(str(part.this) for part in (node.this.this, node.this.expression, node.expression))
            if re.fullmatch(r"\d{4}-\d{2}-\d{2}", text):
                return text
    return None


def _echo(where: str) -> str:
    return repr(_shortened(where, _LONGEST_ECHO))


def _shortened(text: str, longest: int) -> str:
    line = " ".join(text.splitlines())
    return line if len(line) <= longest else line[: longest - 1] + "…"


def columns_in(where: str) -> frozenset[str]:
    """The columns of a WHERE clause, nested fields dotted; none where it cannot be parsed: planning names the fault."""
    try:
        with _faults_as_input_errors(where):
            return frozenset(".".join(_column_path(node) or ()) for node in _column_nodes(_parse(where)))
    except InputError:
        return frozenset()


def check_syntax(where: str) -> None:
    """Check that a WHERE clause can be parsed, whatever table it is about.

    Raises:
        InputError: it cannot; the message quotes it.
    """
    with _faults_as_input_errors(where):
        _parse(where)


def _parse(where: str) -> exp.Expression:
    try:
        trees = sqlglot.parse(_with_escaped_quotes(where), dialect="spark")
    except SqlglotError as error:
        errors = getattr(error, "errors", None) or [{}]
        place = f" at column {errors[0]['col']}" if "col" in errors[0] else ""
        raise InputError(f"predicate {_echo(where)} is not valid Spark SQL{place}") from error
    except (ValueError, TypeError, AttributeError, LookupError) as error:
        raise InputError(f"predicate {_echo(where)} is not valid Spark SQL") from error
    tree = trees[0] if len(trees) == 1 else None
    if tree is None or isinstance(tree, exp.Query | exp.DDL | exp.Command | exp.Drop | exp.Alias):
        raise InputError(f"predicate {_echo(where)}: expected one condition, as it stands behind WHERE")
    for node in _nodes(tree):
        fault = _forbidden(node)
        if fault:
            raise InputError(f"predicate {_echo(where)}: {fault}")
    return tree


_TOKENS = re.compile(
    r"""--[^\n]*|/\*.*?\*/|`[^`]*`|\b[rR]'[^']*'|\b[rR]"[^"]*"|'(?:[^'\\]|\\.|'')*'|"(?:[^"\\]|\\.|"")*\"""",
    re.DOTALL,
)


def _with_escaped_quotes(where: str) -> str:
    """Write a doubled quote inside a string, one quote since Spark 4.1, with the backslash that all parsers know."""

    def token(match: re.Match[str]) -> str:
        text = match[0]
        quote = text[0]
        if quote not in "'\"":
            return text
        inner = re.sub(
            rf"\\.|{quote * 2}", lambda m: f"\\{quote}" if m[0] == quote * 2 else m[0], text[1:-1], flags=re.S
        )
        return f"{quote}{inner}{quote}"

    return _TOKENS.sub(token, where)


def _nodes(tree: exp.Expression) -> Iterator[exp.Expression]:
    """Yield all nodes outside of subqueries."""
    pending = [tree]
    while pending:
        node = pending.pop()
        if not isinstance(node, exp.Query):
            yield node
            pending.extend(child for child in node.iter_expressions() if isinstance(child, exp.Expression))


def _forbidden(node: exp.Expression) -> str | None:
    """Say what keeps a node out of a WHERE clause, where Spark's analyzer refuses it."""
    match node:
        case exp.Any() if isinstance(node.parent, exp.Like | exp.ILike):
            return None
        case exp.AggFunc() | exp.Window() | exp.Any():
            return "aggregate and window functions cannot stand behind WHERE"
        case exp.Placeholder() | exp.Parameter():
            return "a parameter has no value here"
        case exp.Star() if not isinstance(node.parent, exp.Anonymous | exp.Struct):
            return "* is no condition"
        case exp.In() if not node.expressions and all(node.args.get(key) is None for key in _IN_SOURCES):
            return "IN needs at least one value"
    return None


_IN_SOURCES = ("query", "unnest", "field")


def _column_nodes(tree: exp.Expression) -> Iterator[exp.Expression]:
    """Yield the outermost column references, nested fields of four and more parts included."""
    pending = [tree]
    while pending:
        node = pending.pop()
        if _column_path(node):
            yield node
        elif not isinstance(node, exp.Query):
            pending.extend(child for child in node.iter_expressions() if isinstance(child, exp.Expression))


def _column_path(node: exp.Expression) -> list[str] | None:
    if isinstance(node, exp.Column) and not isinstance(node.this, exp.Star):
        return [part.name for part in node.parts]
    if isinstance(node, exp.Dot) and isinstance(node.expression, exp.Identifier):
        parent = _column_path(node.this)
        return [*parent, node.expression.name] if parent else None
    return None


_COMPARISONS: dict[type[exp.Expression], Operation] = {
    exp.EQ: Operation.EQ,
    exp.NEQ: Operation.NOT_EQ,
    exp.LT: Operation.LT,
    exp.LTE: Operation.LT_EQ,
    exp.GT: Operation.GT,
    exp.GTE: Operation.GT_EQ,
}
_FLIPPED = {
    Operation.LT: Operation.GT,
    Operation.LT_EQ: Operation.GT_EQ,
    Operation.GT: Operation.LT,
    Operation.GT_EQ: Operation.LT_EQ,
}
_NULL_REJECTING = (*_COMPARISONS, exp.Like, exp.ILike, exp.RegexpLike, exp.StartsWith, exp.EndsWith, exp.Contains)
_NULL_INTOLERANT = (
    exp.Binary,
    exp.Cast,
    exp.TryCast,
    exp.Neg,
    exp.Paren,
    exp.Not,
    exp.Upper,
    exp.Lower,
    exp.Length,
    exp.Year,
    exp.Month,
    exp.Day,
    exp.TsOrDsToDate,
    exp.TsOrDsAdd,
    exp.AddMonths,
)
_PREFIX_PATTERN = re.compile(r"([^%_\\]+)%+")
_PREFIX_SUFFIX_PATTERN = re.compile(r"([^%_\\]+)%([^%_\\]+)")
_NUMBER_WIDTH: dict[type, int] = {IntegerType: 1, LongType: 2, DecimalType: 3, FloatType: 4, DoubleType: 5}


class _Translator:
    """Translates one clause; ``None`` stands for "Spark does not push this down"."""

    def __init__(self, schema: Schema, clock: Clock, *, case_sensitive: bool) -> None:
        self._schema = schema
        self._resolve = ReferenceResolver(schema, case_sensitive=case_sensitive)
        self._clock = clock
        self._folder = ConstantFolder(clock)

    def reference(self, node: exp.Expression) -> BoundReference:
        """Resolve a column node to its field, under the name that the schema gives it."""
        path = _column_path(node) or []
        for skipped in range(len(path)):  # a name may be qualified by table, namespace and catalog
            try:
                found = self._resolve(".".join(path[skipped:]))
            except InputError:
                continue
            name = self._schema.find_column_name(found.field_id)
            return BoundReference(found.field_id, name or found.name, found.type, found.required)
        return self._resolve(".".join(path))

    def push_down(self, tree: exp.Expression) -> tuple[Expression, list[str]]:
        """Return (pushed expression, the conjuncts that are not)."""
        pushed: list[Expression] = []
        not_null: list[Expression] = []
        rest: list[str] = []
        for node, negated in _conjuncts(tree, negated=False):
            try:
                translated = self._translate(node, negated)
            except OverflowError:  # Spark's dates and times reach further than Python's
                translated = None
            if translated is None:
                rest.append(_sql(node, negated))
            else:
                pushed.append(translated)
            partial = self._prefix_of_pattern(node, negated)
            pushed.extend([partial] if partial is not None else [])
            not_null += [self._not_null(ref) for ref in self._needed(node, negated)]
        return and_(*dict.fromkeys(not_null), *pushed), rest

    def _not_null(self, ref: BoundReference) -> Expression:
        return ALWAYS_TRUE if ref.required else UnboundPredicate(Operation.NOT_NULL, ref.name)

    def _needed(self, node: exp.Expression, negated: bool) -> list[BoundReference]:
        """Return the columns that must not be null for a conjunct to hold, as Spark infers them."""
        if _column_path(node):
            return [self.reference(node)]
        if self._becomes_or(node, negated):
            return []
        if isinstance(node, _NULL_REJECTING):
            return [ref for child in node.iter_expressions() for ref in self._intolerant(child)]
        if isinstance(node, exp.In) and self._is_comparison(node):
            return self._intolerant(node.this)
        return []

    def _becomes_or(self, node: exp.Expression, negated: bool) -> bool:
        """Whether Spark rewrites a conjunct to an OR, from which it infers nothing."""
        if isinstance(node, exp.EQ | exp.NEQ):
            sides = (self._timestamp_as_date(side) for side in (node.this, node.expression))
            return isinstance(node, exp.EQ) is negated and any(sides)
        if isinstance(node, exp.Like) and negated is not bool(node.args.get("negate")):
            return _PREFIX_SUFFIX_PATTERN.fullmatch(self._pattern(node) or "") is not None
        return False

    def _is_comparison(self, node: exp.In) -> bool:
        """Whether Spark turns an IN into a comparison: it has one distinct value."""
        values = {repr(value) for value in self._in_values(node) or ()}
        return len(values) == 1 and "None" not in values

    def _intolerant(self, node: exp.Expression) -> list[BoundReference]:
        if _column_path(node):
            return [self.reference(node)]
        if isinstance(node, _NULL_INTOLERANT):
            return [ref for child in node.iter_expressions() for ref in self._intolerant(child)]
        return []

    def _translate(self, node: exp.Expression, negated: bool) -> Expression | None:
        while isinstance(node, exp.Paren | exp.Not):
            negated = negated is not isinstance(node, exp.Not)
            node = node.this
        if isinstance(node, exp.And | exp.Or):
            return self._junction(node, negated)
        if isinstance(node, exp.Between):
            return self._translate(_between(node), negated)
        handler = _HANDLERS.get(type(node))
        if handler is not None:
            return handler(self, node, negated)
        if _column_path(node):
            return self._boolean_column(node, negated)
        return self._constant_condition(node, negated)

    def _junction(self, node: exp.And | exp.Or, negated: bool) -> Expression | None:
        parts = [self._translate(part, negated) for part in _chain(node)]
        translated = [part for part in parts if part is not None]
        if len(translated) < len(parts):
            return None
        return and_(*translated) if isinstance(node, exp.And) is not negated else or_(*translated)

    def _boolean_column(self, node: exp.Expression, negated: bool) -> Expression | None:
        ref = self.reference(node)
        if not isinstance(ref.type, BooleanType):
            raise InputError(f"{ref.name!r} of type {ref.type} is no condition: expected a boolean column")
        op = Operation.NOT_EQ if negated else Operation.EQ
        return UnboundPredicate(op, ref.name, (Literal(Kind.BOOLEAN, True),))

    def _constant_condition(self, node: exp.Expression, negated: bool) -> Expression | None:
        try:
            value = self._folder.fold(node)
        except NotConstantError:
            return None
        if value is None:
            return ALWAYS_FALSE
        if not isinstance(value, bool):
            raise InputError(f"{_sql(node)} is no condition")
        return ALWAYS_TRUE if value is not negated else ALWAYS_FALSE

    def _comparison(self, node: exp.Binary, negated: bool) -> Expression | None:
        op = _COMPARISONS[type(node)]
        if negated:
            op = op.negate()
        try:
            return self._compare_constant(node.this, op, self._folder.fold(node.expression))
        except NotConstantError:
            pass
        try:
            return self._compare_constant(node.expression, _FLIPPED.get(op, op), self._folder.fold(node.this))
        except NotConstantError:
            return None

    def _compare_constant(self, side: exp.Expression, op: Operation, value: Any) -> Expression | None:
        """Translate ``side op value``; the side is a column, a widening cast of one, or a timestamp's date."""
        by_date = self._timestamp_as_date(side)
        ref = by_date or self._column(side)
        if ref is None:
            return self._fold_comparison(side, op, value)
        if value is None:
            return ALWAYS_FALSE
        if by_date is not None:
            return self._compare_date(by_date, op, value)
        if isinstance(value, float) and math.isnan(value):
            return self._compare_nan(ref, op)
        return self._predicate(ref, coerce(ref.type, op, value, self._clock))

    def _predicate(self, ref: BoundReference, coerced: tuple[Operation, Literal] | Always | None) -> Expression | None:
        if coerced is None:
            return None
        if isinstance(coerced, Always):
            return self._not_null(ref) if coerced is Always.TRUE else ALWAYS_FALSE
        return UnboundPredicate(coerced[0], ref.name, (coerced[1],))

    @staticmethod
    def _compare_nan(ref: BoundReference, op: Operation) -> Expression | None:
        names = {Operation.EQ: Operation.IS_NAN, Operation.NOT_EQ: Operation.NOT_NAN}
        if op not in names or not isinstance(ref.type, FloatType | DoubleType):
            return None
        return UnboundPredicate(names[op], ref.name)

    def _fold_comparison(self, side: exp.Expression, op: Operation, value: Any) -> Expression | None:
        other = self._folder.fold(side)  # raises NotConstantError for anything with a column
        if other is None or value is None:
            return ALWAYS_FALSE
        order = compare_constants(other, value, self._clock)
        holds = {
            Operation.EQ: order == 0,
            Operation.NOT_EQ: order != 0,
            Operation.LT: order < 0,
            Operation.LT_EQ: order <= 0,
            Operation.GT: order > 0,
            Operation.GT_EQ: order >= 0,
        }
        return ALWAYS_TRUE if holds[op] else ALWAYS_FALSE

    def _column(self, node: exp.Expression) -> BoundReference | None:
        """Return the column that a node is, looking through casts that lose nothing."""
        if isinstance(node, exp.Paren):
            return self._column(node.this)
        if _column_path(node):
            return self.reference(node)
        if isinstance(node, exp.Cast):
            ref = self._column(node.this)
            return ref if ref is not None and _widens(ref.type, node.to) else None
        return None

    def _timestamp_as_date(self, node: exp.Expression) -> BoundReference | None:
        """Return the timestamp column whose date a node is: ``CAST(ts AS DATE)``, ``date(ts)``, ``to_date(ts)``."""
        if isinstance(node, exp.Paren):
            return self._timestamp_as_date(node.this)
        is_date = (isinstance(node, exp.Cast) and node.to.this is exp.DType.DATE) or (
            isinstance(node, exp.TsOrDsToDate) and node.args.get("format") is None
        )
        ref = self.reference(node.this) if is_date and _column_path(node.this) else None
        return ref if ref is not None and isinstance(ref.type, TimestampType | TimestamptzType) else None

    def _compare_date(self, ref: BoundReference, op: Operation, value: Any) -> Expression | None:
        day = parse_date(value) if isinstance(value, str) else value
        if not isinstance(day, dt.date):
            raise MismatchError(f"the date of {ref.name!r} cannot be compared with {day!r}")
        if isinstance(day, dt.datetime):
            return None
        start, end = self._midnight(ref, day), self._midnight(ref, day + dt.timedelta(days=1))
        from_start = UnboundPredicate(Operation.GT_EQ, ref.name, (start,))
        from_end = UnboundPredicate(Operation.GT_EQ, ref.name, (end,))
        before_start = UnboundPredicate(Operation.LT, ref.name, (start,))
        before_end = UnboundPredicate(Operation.LT, ref.name, (end,))
        return {
            Operation.EQ: and_(from_start, before_end),
            Operation.NOT_EQ: or_(before_start, from_end),
            Operation.LT: before_start,
            Operation.LT_EQ: before_end,
            Operation.GT: from_end,
            Operation.GT_EQ: from_start,
        }[op]

    def _midnight(self, ref: BoundReference, day: dt.date) -> Literal:
        return timestamp_literal(ref.type, dt.datetime.combine(day, dt.time()), self._clock)

    def _null_safe(self, node: exp.Binary, negated: bool) -> Expression | None:
        equal = isinstance(node, exp.NullSafeEQ) is not negated
        for side, other in ((node.this, node.expression), (node.expression, node.this)):
            ref = self._column(side)
            if ref is None:
                continue
            try:
                value = self._folder.fold(other)
            except NotConstantError:
                return None
            if value is None:
                return self._null_test(ref, equal)
            op = Operation.EQ if equal else Operation.NOT_EQ
            return self._predicate(ref, coerce(ref.type, op, value, self._clock)) if value == value else None
        return None

    def _null_test(self, ref: BoundReference, is_null: bool) -> Expression:
        if is_null:
            return ALWAYS_FALSE if ref.required else UnboundPredicate(Operation.IS_NULL, ref.name)
        return self._not_null(ref)

    def _is(self, node: exp.Is, negated: bool) -> Expression | None:
        ref = self._column(node.this)
        if ref is None:
            return None
        if isinstance(node.expression, exp.Null):
            return self._null_test(ref, not negated)
        if isinstance(node.expression, exp.Boolean) and isinstance(ref.type, BooleanType):
            op = Operation.NOT_EQ if negated else Operation.EQ
            return UnboundPredicate(op, ref.name, (Literal(Kind.BOOLEAN, bool(node.expression.this)),))
        return None

    def _in_values(self, node: exp.In) -> list[Any] | None:
        try:
            return [self._folder.fold(item) for item in node.expressions]
        except NotConstantError:
            return None

    def _in(self, node: exp.In, negated: bool) -> Expression | None:
        values = self._in_values(node)
        if node.args.get("query") is not None or not values:
            return None
        by_date = self._timestamp_as_date(node.this)
        ref = by_date or self._column(node.this)
        if ref is None:
            return None
        if negated and None in values:
            return ALWAYS_FALSE
        present = [value for value in values if value is not None]
        if by_date is not None:
            days = [self._compare_date(by_date, Operation.EQ, value) for value in present]
            return days[0] if len(days) == 1 and not negated else None
        return self._in_literals(ref, present, negated)

    def _in_literals(self, ref: BoundReference, values: list[Any], negated: bool) -> Expression | None:
        literals: list[Literal] = []
        for value in values:
            if isinstance(value, float) and math.isnan(value):
                return None
            coerced = coerce(ref.type, Operation.EQ, value, self._clock)
            if coerced is None:
                return None
            if not isinstance(coerced, Always):
                literals.append(coerced[1])
        if not literals:
            return self._not_null(ref) if negated else ALWAYS_FALSE
        if not negated:
            return UnboundPredicate(Operation.IN, ref.name, tuple(literals))
        # Iceberg's NOT IN holds for null, SQL's does not
        return and_(self._not_null(ref), UnboundPredicate(Operation.NOT_IN, ref.name, tuple(literals)))

    def _like(self, node: exp.Like, negated: bool) -> Expression | None:
        negated = negated is not bool(node.args.get("negate"))
        pattern = self._pattern(node)
        ref = self._column(node.this)
        if pattern is None or ref is None or not isinstance(ref.type, StringType):
            return None
        prefix = _PREFIX_PATTERN.fullmatch(pattern)
        if prefix:
            op = Operation.NOT_STARTS_WITH if negated else Operation.STARTS_WITH
            return UnboundPredicate(op, ref.name, (Literal(Kind.STRING, prefix[1]),))
        if not re.search(r"[%_\\]", pattern):
            op = Operation.NOT_EQ if negated else Operation.EQ
            return UnboundPredicate(op, ref.name, (Literal(Kind.STRING, pattern),))
        return None

    def _pattern(self, node: exp.Expression) -> str | None:
        try:
            pattern = self._folder.fold(node.expression)
        except NotConstantError:
            return None
        return pattern if isinstance(pattern, str) else None

    def _prefix_of_pattern(self, node: exp.Expression, negated: bool) -> Expression | None:
        """Return the STARTS WITH that Spark takes out of ``LIKE 'a%b'``; the rest of it is not pushed down."""
        if not isinstance(node, exp.Like) or negated or node.args.get("negate"):
            return None
        match = _PREFIX_SUFFIX_PATTERN.fullmatch(self._pattern(node) or "")
        ref = self._column(node.this)
        if not match or ref is None or not isinstance(ref.type, StringType):
            return None
        return UnboundPredicate(Operation.STARTS_WITH, ref.name, (Literal(Kind.STRING, match[1]),))

    def _starts_with(self, node: exp.StartsWith, negated: bool) -> Expression | None:
        prefix, ref = self._pattern(node), self._column(node.this)
        if prefix is None or ref is None or not isinstance(ref.type, StringType):
            return None
        op = Operation.NOT_STARTS_WITH if negated else Operation.STARTS_WITH
        return UnboundPredicate(op, ref.name, (Literal(Kind.STRING, prefix),))


_HANDLERS: dict[type[exp.Expression], Callable[[_Translator, Any, bool], Expression | None]] = {
    **dict.fromkeys(_COMPARISONS, _Translator._comparison),
    exp.NullSafeEQ: _Translator._null_safe,
    exp.NullSafeNEQ: _Translator._null_safe,
    exp.Is: _Translator._is,
    exp.In: _Translator._in,
    exp.Like: _Translator._like,
    exp.StartsWith: _Translator._starts_with,
}


def _conjuncts(node: exp.Expression, *, negated: bool) -> Iterator[tuple[exp.Expression, bool]]:
    """Yield the conjuncts of a condition after pushing NOT down, each with whether it is negated."""
    pending = [(node, negated)]
    while pending:
        node, negated = pending.pop()
        if isinstance(node, exp.Paren | exp.Not):
            pending.append((node.this, negated is not isinstance(node, exp.Not)))
        elif isinstance(node, exp.Between) and not negated:
            pending.append((_between(node), False))
        elif (isinstance(node, exp.And) and not negated) or (isinstance(node, exp.Or) and negated):
            pending += [(node.expression, negated), (node.this, negated)]
        else:
            yield node, negated


def _chain(node: exp.And | exp.Or) -> list[exp.Expression]:
    """Return the operands of ``a OR b OR c`` (or AND), which parses as a chain down the left side."""
    kind: type[exp.Expression] = type(node)
    parts: list[exp.Expression] = []
    current: exp.Expression = node
    while isinstance(current, kind):
        parts.append(current.expression)
        current = current.this
    return [current, *reversed(parts)]


def _between(node: exp.Between) -> exp.And:
    low = exp.GTE(this=node.this.copy(), expression=node.args["low"].copy())
    high = exp.LTE(this=node.this.copy(), expression=node.args["high"].copy())
    return exp.And(this=low, expression=high)


def _sql(node: exp.Expression, negated: bool = False) -> str:
    text = str(node.sql(dialect="spark"))
    return f"NOT ({text})" if negated else text


def _widens(source: IcebergType, target: exp.DataType) -> bool:
    """Whether a cast keeps every value and its order, so that Spark moves it to the constant."""
    kind = target.this
    if isinstance(source, DateType):
        return kind in (exp.DType.TIMESTAMP, exp.DType.TIMESTAMPTZ, exp.DType.TIMESTAMPNTZ)
    widths = {exp.DType.INT: 1, exp.DType.BIGINT: 2, exp.DType.FLOAT: 4, exp.DType.DOUBLE: 5}
    width = _NUMBER_WIDTH.get(type(source))
    return width is not None and kind in widths and widths[kind] >= width and not isinstance(source, DecimalType)
