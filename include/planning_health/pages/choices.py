"""What the maintenance form offers for a table: the specs, fields, columns and properties of its newest diagnosis."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from planning_health.pages.maintenance_form import MaintenanceForm
from planning_health.reports.reading import mappings, text, whole
from planning_health.wording import visible

MAX_COLUMNS: Final = 300
"""Columns that the form offers, those whose statistics take the most bytes first."""

MODES: Final = {
    "none": "none: no statistics",
    "counts": "counts: values and nulls",
    "truncate(16)": "truncate(16): bounds of 16 characters",
    "full": "full: whole bounds",
    "": "no mode of its own: the default",
}
"""Metrics modes and what they are called; the empty one removes a column's property."""


@dataclass(frozen=True)
class Choice:
    """A value of the form and how it is called."""

    value: str
    label: str


@dataclass(frozen=True)
class ColumnChoices:
    """A column and the lines of the form's field ``metrics_columns`` that give it a mode."""

    name: str
    lines: Sequence[Choice]


@dataclass(frozen=True)
class Choices:
    """What the form offers.

    Attributes:
        specs: the partition specs whose manifests the table has.
        fields: the names of partition fields.
        modes: metrics modes for the table's default.
        columns: the columns, the costliest first.
        now: the table's properties as they are, those left at Iceberg's default included.
    """

    specs: Sequence[Choice]
    fields: Sequence[str]
    modes: Sequence[Choice]
    columns: Sequence[ColumnChoices]
    now: Mapping[str, str]


def choices(health: Mapping[str, Any], form: MaintenanceForm) -> Choices:
    """The choices for a table, and what the form holds beyond them: other modes, other columns.

    Args:
        health: the data of the table's diagnosis.
        form: the form as it is filled in; the fields that it sorts by come first, in its order.
    """
    fields: dict[int, list[str]] = {}
    for row in mappings(health.get("manifests")):
        if (spec_id := whole(row.get("spec_id"))) is not None and whole(row.get("content")) == 0:
            fields.setdefault(spec_id, [])
    for row in mappings(health.get("overlap")):
        if (spec_id := whole(row.get("spec_id"))) is not None:
            fields.setdefault(spec_id, []).append(text(row.get("field")))
    known = sorted({name for names in fields.values() for name in names})
    asked = form.column_modes
    columns = [text(row.get("column")) for row in mappings(health.get("statistics_bytes"))]
    return Choices(
        specs=[
            Choice(str(spec), f"{spec} ({visible(', '.join(fields[spec])) or 'no field'})") for spec in sorted(fields)
        ],
        fields=list(dict.fromkeys([*form.sort_by, *known])),
        modes=[Choice(mode, label) for mode, label in _modes(form.metrics_default).items() if mode],
        columns=[_column(name, asked.get(name, "")) for name in dict.fromkeys([*asked, *columns[:MAX_COLUMNS]])],
        now={text(row.get("property")): visible(text(row.get("value"))) for row in mappings(health.get("properties"))},
    )


def _modes(asked: str) -> Mapping[str, str]:
    return MODES if asked in MODES else {asked: visible(asked), **MODES}


def _column(name: str, asked: str) -> ColumnChoices:
    lines = [Choice(f"{name} = {mode}", label) for mode, label in _modes(asked).items()]
    return ColumnChoices(visible(name), lines)
