"""Reads a partition spec as people write it in Spark SQL: ``days(ts), bucket(16, id), country``."""

from __future__ import annotations

import re
from typing import Final

from planning_health.errors import InputError

SpecField = tuple[str, str]
"""(column, transform as Iceberg writes it)."""

UNPARTITIONED: Final = "unpartitioned"

_EXPECTED: Final = (
    "expected fields like days(ts), months(ts), bucket(16, id), truncate(4, name) or a column, separated by commas, or "
    f"'{UNPARTITIONED}'"
)
_NAME: Final = r"(?:`(?:[^`]|``)+`|\w+)(?:\.(?:`(?:[^`]|``)+`|\w+))*"
_FIELD: Final = re.compile(
    rf"\s*(?:(?P<function>\w+)\s*\(\s*(?:(?P<first>\d+)\s*,\s*)?(?P<argument>{_NAME})\s*(?:,\s*(?P<last>\d+)\s*)?\)"
    rf"|(?P<column>{_NAME}))\s*"
)
_TRANSFORMS: Final = {
    **dict.fromkeys(("year", "years"), "year"),
    **dict.fromkeys(("month", "months"), "month"),
    **dict.fromkeys(("day", "days", "date"), "day"),
    **dict.fromkeys(("hour", "hours", "date_hour"), "hour"),
    "identity": "identity",
}
_WITH_NUMBER: Final = frozenset({"bucket", "truncate"})


def parse_spec(text: str) -> list[SpecField]:
    """Reads a partition spec.

    Args:
        text: transforms as in Spark SQL's ``PARTITIONED BY``; names with dots or spaces in back quotes.

    Returns:
        (column, transform) of each field, transforms as Iceberg writes them: ``day``, ``bucket[16]``.

    Raises:
        InputError: naming the text and what was expected.
    """
    if text.strip().lower() == UNPARTITIONED:
        return []
    fields: list[SpecField] = []
    position = 0
    while True:
        match = _FIELD.match(text, position)
        if match is None:
            raise InputError(f"partition spec {text!r} cannot be read at {text[position:]!r}: {_EXPECTED}")
        fields.append(_field(text, match))
        position = match.end()
        if position == len(text):
            return fields
        if text[position] != ",":
            raise InputError(f"partition spec {text!r} cannot be read at {text[position:]!r}: {_EXPECTED}")
        position += 1


def _field(text: str, match: re.Match[str]) -> SpecField:
    if match["column"] is not None:
        return _plain(match["column"]), "identity"
    name, number = match["function"].lower(), match["first"] or match["last"]
    if name in _WITH_NUMBER and number and int(number):
        return _plain(match["argument"]), f"{name}[{int(number)}]"
    if name in _TRANSFORMS and number is None:
        return _plain(match["argument"]), _TRANSFORMS[name]
    raise InputError(f"partition spec {text!r}: {match[0].strip()!r} is no transform: {_EXPECTED}")


def _plain(name: str) -> str:
    """A column's full name without its back quotes."""
    quoted = re.findall(r"`((?:[^`]|``)+)`|(\w+)", name)
    return ".".join(inside.replace("``", "`") or bare for inside, bare in quoted)
