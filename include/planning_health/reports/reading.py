"""Tolerant reading of result data: a missing or odd value becomes "not measured", never an error and never 0."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from planning_health.reports.model import Level, Number


def mapping(value: Any) -> Mapping[str, Any]:
    """The value if it is a JSON object, else an empty one."""
    return value if isinstance(value, Mapping) else {}


def mappings(value: Any) -> list[Mapping[str, Any]]:
    """The JSON objects of a list."""
    return [item for item in value if isinstance(item, Mapping)] if isinstance(value, list) else []


def texts(value: Any) -> list[str]:
    """The strings of a list."""
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []


def text(value: Any) -> str:
    """The value as a string; nothing becomes an empty one."""
    return "" if value is None else str(value)


def number(value: Any) -> Number | None:
    """A finite number, or ``None``."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return value if math.isfinite(value) else None


def whole(value: Any) -> int | None:
    """A whole number, or ``None``."""
    found = number(value)
    return None if found is None else int(found)


def level(value: Any) -> Level:
    """A level; anything unknown is "not measured"."""
    match value:
        case "critical" | "warning" | "ok":
            return value  # type: ignore[no-any-return]
        case _:
            return "not_measured"
