"""The exceptions that a user can meet, one class for each exit status."""

from __future__ import annotations

from planning_health.redaction import redact


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
