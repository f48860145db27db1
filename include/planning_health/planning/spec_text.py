"""Reads and writes a partition spec as people write it in Spark SQL: ``days(ts), bucket(16, id), country``."""

from __future__ import annotations

import re
from typing import Any, Final

from pyiceberg.partitioning import PartitionSpec
from pyiceberg.transforms import Transform, VoidTransform

from planning_health.errors import InputError
from planning_health.identifiers import quote_identifier
from planning_health.metadata.model import TableInfo

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
_SPARK_NAMES: Final = {"year": "years", "month": "months", "day": "days", "hour": "hours"}
_PLAIN_NAME: Final = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*", re.ASCII)
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


def spec_name(info: TableInfo, spec_id: int) -> str:
    """A spec for people: its number, which commands take, and its fields, ``spec 1 (days(ordered_on))``."""
    spec = info.specs.get(spec_id)
    return f"spec {spec_id} ({spec_text(info, spec)})" if spec is not None else f"spec {spec_id}"


def spec_text(info: TableInfo, spec: PartitionSpec) -> str:
    """A spec's fields as in Spark SQL's ``PARTITIONED BY``; those that were dropped stay as ``void``."""
    fields = [_field_text(field.transform, _column(info, field.source_id)) for field in spec.fields]
    return ", ".join(fields) or UNPARTITIONED


def partition_field_hint(info: TableInfo, name: str) -> str | None:
    """What to filter by instead of a partition field's name; ``None`` where no field of a live column has it."""
    for _, spec in sorted(info.specs.items(), reverse=True):
        for field in spec.fields:
            known = info.schema.find_column_name(field.source_id) is not None
            if field.name.lower() == name.lower() and known and not isinstance(field.transform, VoidTransform):
                column = _column(info, field.source_id)
                text = _field_text(field.transform, column)
                of = "" if text == column else f", {text}"
                return f"{name} is a partition field{of}: filter {column}, and planning uses it"
    return None


def _field_text(transform: Transform[Any, Any], column: str) -> str:
    name, _, number = str(transform).rstrip("]").partition("[")
    if name == "identity":
        return column
    return f"{name}({number}, {column})" if number else f"{_SPARK_NAMES.get(name, name)}({column})"


def _column(info: TableInfo, source_id: int) -> str:
    field = info.source_field(source_id)
    name = info.schema.find_column_name(source_id) or (field.name if field else f"field id {source_id}")
    return name if _PLAIN_NAME.fullmatch(name) else quote_identifier(name)
