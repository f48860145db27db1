"""Reads filters as Iceberg's Spark scans describe them in a query plan (``Spark3Util.describe``).

The description is for people: texts are not escaped, dates and times stand as whole numbers. A text ends at the first
quote that is followed by what may follow a value; a description that cannot be read that way is refused.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal
from typing import Final

from planning_health.errors import InputError
from planning_health.planning.expressions import (
    ALWAYS_FALSE,
    ALWAYS_TRUE,
    Expression,
    Operation,
    UnboundPredicate,
    and_,
    leaves,
    not_,
    or_,
    predicate,
)
from planning_health.planning.literals import Kind, Literal

_OPERATORS: Final = {
    " IS NULL": Operation.IS_NULL,
    " IS NOT NULL": Operation.NOT_NULL,
    " <= ": Operation.LT_EQ,
    " < ": Operation.LT,
    " >= ": Operation.GT_EQ,
    " > ": Operation.GT,
    " != ": Operation.NOT_EQ,
    " = ": Operation.EQ,
    " NOT LIKE ": Operation.NOT_STARTS_WITH,
    " LIKE ": Operation.STARTS_WITH,
    " NOT IN (": Operation.NOT_IN,
    " IN (": Operation.IN,
}
_TERM: Final = re.compile(rf"(.+?)({'|'.join(map(re.escape, _OPERATORS))})", re.DOTALL)
_NAN: Final = re.compile(r"(is_nan|not_nan)\((.+?)\)(?=, |\)| AND | OR |$)", re.DOTALL)
_TEXT: Final = re.compile(r"'(.*?)'(?=, |\)| AND | OR |$)", re.DOTALL)
_BYTES: Final = re.compile(r"X'([0-9A-F]*)'")
_BARE: Final = re.compile(r"[^\s,()']+")
_NUMBER: Final = re.compile(r"-?\d+(?:\.\d+)?(?:E[+-]?\d+)?")
_TRANSFORM: Final = re.compile(r"[a-z]+(?:\[\d+\])?\((.+)\)", re.DOTALL)
_DEEPEST: Final = 150
"""Levels of brackets; deeper filters are refused, and walked nowhere."""


@dataclass(frozen=True)
class ScanFilter:
    """The filters of one scan, all of which must hold.

    Attributes:
        expression: the filter; with ``transformed``, only its columns are what Iceberg was given.
        transformed: a part of it is about a transform of a column, such as ``bucket[16](id)``.
    """

    expression: Expression
    transformed: bool

    @property
    def columns(self) -> frozenset[str]:
        """The columns filtered by."""
        return frozenset(leaf.name for leaf in leaves(self.expression) if isinstance(leaf, UnboundPredicate))


def parse_filters(text: str) -> ScanFilter:
    """Reads the filters of one scan.

    Raises:
        InputError: the description cannot be read.
    """
    reader = _Reader(text)
    filters = [reader.expression(0)] if text else []
    while reader.take(", "):
        filters.append(reader.expression(0))
    if reader.rest:
        raise reader.error()
    return ScanFilter(and_(*filters), reader.transformed)


class _Reader:
    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self.transformed = False

    @property
    def rest(self) -> str:
        return self._text[self._at :]

    def error(self) -> InputError:
        return InputError(f"cannot read the filter {self._text[:200]!r} at {self.rest[:40]!r}")

    def take(self, token: str) -> bool:
        if not self._text.startswith(token, self._at):
            return False
        self._at += len(token)
        return True

    def _match(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        found = pattern.match(self._text, self._at)
        if found:
            self._at = found.end()
        return found

    def expression(self, level: int) -> Expression:
        if level > _DEEPEST:
            raise InputError(f"the filter {self._text[:200]!r} is nested too deeply")
        if self.take("NOT ("):
            return not_(self._closed(self.expression(level + 1)))
        if self.take("("):
            left = self.expression(level + 1)
            join = and_ if self.take(" AND ") else or_ if self.take(" OR ") else None
            if join is None:
                raise self.error()
            return self._closed(join(left, self.expression(level + 1)))
        return self._predicate()

    def _closed(self, expression: Expression) -> Expression:
        if not self.take(")"):
            raise self.error()
        return expression

    def _predicate(self) -> Expression:
        if nan := self._match(_NAN):
            return predicate(Operation.IS_NAN if nan[1] == "is_nan" else Operation.NOT_NAN, nan[2])
        for word, constant in (("true", ALWAYS_TRUE), ("false", ALWAYS_FALSE)):
            if re.match(rf"{word}(?=, |\)| AND | OR |$)", self.rest) and self.take(word):
                return constant
        found = self._match(_TERM)
        if found is None:
            raise self.error()
        name, op = found[1], _OPERATORS[found[2]]
        if transformed := _TRANSFORM.fullmatch(name):
            self.transformed, name = True, transformed[1]
        return predicate(op, name, *self._values(op))

    def _values(self, op: Operation) -> list[Literal]:
        if op in (Operation.IS_NULL, Operation.NOT_NULL):
            return []
        if op in (Operation.STARTS_WITH, Operation.NOT_STARTS_WITH):
            value = self._value()
            return [Literal(value.kind, str(value.value).removesuffix("%"))]
        values = [self._value()]
        if op in (Operation.IN, Operation.NOT_IN):
            while self.take(", "):
                values.append(self._value())
            if not self.take(")"):
                raise self.error()
        return values

    def _value(self) -> Literal:
        if found := self._match(_TEXT):
            return Literal(Kind.STRING, found[1])
        if found := self._match(_BYTES):
            return Literal(Kind.BINARY, bytes.fromhex(found[1]))
        found = self._match(_BARE)
        if found is None:
            raise self.error()
        return _bare(found[0])


def _bare(word: str) -> Literal:
    """A value without quotes; one that is no number or truth value is the text of a UUID."""
    if word in ("true", "false"):
        return Literal(Kind.BOOLEAN, word == "true")
    if re.fullmatch(r"-?\d+", word):
        return Literal(Kind.LONG, int(word))
    if _NUMBER.fullmatch(word):
        return Literal(Kind.DECIMAL, Decimal(word))
    if word in ("Infinity", "-Infinity"):
        return Literal(Kind.DOUBLE, float(word))
    return Literal(Kind.STRING, word)
