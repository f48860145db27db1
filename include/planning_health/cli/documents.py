"""JSON documents that commands are given: strictly JSON, and no deeper than the interpreter can follow."""

from __future__ import annotations

import json
import math
from typing import Any, NoReturn

from planning_health.errors import InputError


def parse_json(text: str, name: str) -> Any:
    """A document given as JSON.

    Args:
        text: the document.
        name: what the error calls it.

    Raises:
        InputError: it is not JSON (``NaN`` and numbers beyond float64 are not), or nested too deeply.
    """
    try:
        return json.loads(text, parse_constant=_refuse, parse_float=_finite)
    except ValueError as error:
        raise InputError(f"{name} is not JSON: {error}") from error
    except RecursionError as error:
        raise InputError(f"{name} is nested too deeply: expected the document that the help shows") from error


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no JSON number")


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text} is beyond the largest number")
    return number
