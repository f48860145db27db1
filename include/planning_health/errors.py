"""The exceptions that a user can meet, one class for each exit status."""

from __future__ import annotations

import re
from typing import Final

from pydantic import ValidationError

from planning_health.redaction import first_line, redact

_DRIVERS_OWN: Final = re.compile(r"\(\w+(\.\w+)+\) ")
_SYSTEM_REASON: Final = re.compile(r"\[Errno -?\d+\] (?P<what>[^\"'()\[\]]+)")


class PlanningHealthError(Exception):
    """Base of all errors that are shown as one line, without a traceback."""

    exit_status = 1

    def __init__(self, message: str = "") -> None:
        super().__init__(redact(message))


class InputError(PlanningHealthError):
    """Bad input or configuration: the message names the value and what was expected."""

    exit_status = 2


class WorkFailedError(PlanningHealthError):
    """The work was understood but could not be done."""


class NotMeasurableError(WorkFailedError):
    """One table cannot be measured; the message is the reason that the report shows."""


def _hides_a_value(where: tuple[int | str, ...]) -> bool:
    """Whether a value at this place may be a secret: a catalog's properties, Spark's conf, or a key that says so."""
    return bool({"catalogs", "conf"} & set(where)) or any("secret" in str(part) for part in where)


def first_problem(error: ValidationError) -> str:
    """The first fault that pydantic found: the field, what was expected, and the value unless it is a secret."""
    problem = error.errors()[0]
    where = ".".join(str(part) for part in problem["loc"])
    message = problem["msg"].removeprefix("Value error, ")
    if not where:
        return message
    value = problem.get("input")
    shown = isinstance(value, str | int | float | bool) and not _hides_a_value(problem["loc"])
    return f"{where}: {message} (got {value!r})" if shown else f"{where}: {message}"


def told(error: BaseException) -> str:
    """What a library's exception tells, in one line: the system's own reason, where that is buried in others."""
    if isinstance(error, ValidationError):
        return f"unexpected answer: {first_problem(error)}"
    if buried := _SYSTEM_REASON.search(str(error)):
        return buried["what"].strip()
    line = first_line(error)
    driver = _DRIVERS_OWN.match(line)  # SQLAlchemy repeats its drivers' exceptions
    return line[driver.end() :] if driver else f"{type(error).__name__}: {line}"
