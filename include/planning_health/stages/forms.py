"""From a form's fields to what a run does: validated, with messages that name the field."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from planning_health.errors import InputError, first_problem
from planning_health.identifiers import TableName
from planning_health.maintenance.request import MaintenanceRequest
from planning_health.planning.fewer_statistics import MetricsMode
from planning_health.planning.predicates import columns_in
from planning_health.planning.spec_text import UNPARTITIONED, parse_spec
from planning_health.settings import Query, SettingsDocument, TableRule
from planning_health.stages.known_columns import check_columns
from planning_health.stages.what_if import WhatIfRequest


class WhatIf(BaseModel):
    """The fields of the form ``planning_what_if``; what is left empty is taken from the settings."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    table: str
    predicates: list[str] = Field(default_factory=list)
    workers: int | None = Field(default=None, ge=1)
    partitions_per_task: int | None = Field(default=None, ge=1)
    tasks: int | None = Field(default=None, ge=1)
    strategy: str | None = None
    batch_size: int | None = Field(default=None, ge=0)
    replicas: int | None = Field(default=None, ge=1)
    spec: str | None = None
    metrics_default: str | None = None
    metrics_columns: list[str] = Field(default_factory=list)
    target_manifest_bytes: int | None = Field(default=None, ge=1024)
    sort_by: list[str] = Field(default_factory=list)


def maintenance_request(fields: Mapping[str, Any]) -> tuple[TableName, MaintenanceRequest]:
    """The table and the request of the form ``table_maintenance``.

    Args:
        fields: the form's fields. ``metrics_columns`` holds one ``column = mode`` each line.

    Raises:
        InputError: naming the field, its value and what was expected.
    """
    table = TableName.parse(str(fields.get("table") or ""))
    wanted = {name: fields[name] for name in MaintenanceRequest.model_fields if fields.get(name) not in (None, "")}
    if "metrics_columns" in wanted:
        wanted["metrics_columns"] = dict(_column_mode(line) for line in wanted["metrics_columns"] if line.strip())
    try:
        return table, MaintenanceRequest.model_validate(wanted)
    except ValidationError as error:
        raise InputError(first_problem(error)) from error


def what_if_request(fields: Mapping[str, Any]) -> WhatIfRequest:
    """The alternatives that the form ``planning_what_if`` asks for.

    Args:
        fields: the form's fields. ``metrics_columns`` holds one ``column = mode`` each line.

    Raises:
        InputError: naming the field, its value and what was expected.
    """
    wanted = {name: fields[name] for name in WhatIfRequest.model_fields if fields.get(name) not in (None, "")}
    if "metrics_columns" in wanted:
        wanted["metrics_columns"] = dict(_column_mode(line) for line in wanted["metrics_columns"] if line.strip())
    try:
        request = WhatIfRequest.model_validate(wanted)
    except ValidationError as error:
        raise InputError(first_problem(error)) from error
    parse_spec(request.spec or UNPARTITIONED)
    for mode in filter(None, (request.metrics_default, *request.metrics_columns.values())):
        MetricsMode.parse(mode)
    return request


def what_if_settings(settings: SettingsDocument, fields: Mapping[str, Any]) -> tuple[TableName, SettingsDocument]:
    """The table of the form ``planning_what_if``, and settings that answer its question with the usual steps.

    The predicates become the table's queries, and the columns of another partition spec are recorded too. Columns are
    checked against the table's newest measurement.

    Raises:
        InputError: naming the field, its value and what was expected.
    """
    try:
        what_if = WhatIf.model_validate({name: value for name, value in fields.items() if value not in (None, "")})
        table = TableName.parse(what_if.table)
        document = settings.model_dump()
        document["assignment"] |= _given(what_if, "workers", "partitions_per_task", "tasks", "strategy")
        document["plan_tasks"] |= _given(what_if, "batch_size", "replicas")
        predicates = [line.strip() for line in what_if.predicates if line.strip()]
        request = what_if_request(fields)
        columns = request.spec_columns
        used = [("predicates", column) for text in predicates for column in sorted(columns_in(text))]
        used += [("spec", column) for column in columns]
        used += [("metrics_columns", column) for column in request.metrics_columns]
        check_columns(settings.home, table, used)
        if predicates or columns:
            rule = settings.rule_for(table) or TableRule(match="*")
            queries = [Query(name=f"predicate_{number}", where=text) for number, text in enumerate(predicates, 1)]
            update = {"match": _literal_pattern(table.dotted), "queries": queries or rule.queries}
            asked = rule.model_copy(update=update | {"record_columns": [*rule.record_columns, *columns]})
            document["tables"] = [asked.model_dump(), *document["tables"]]
        return table, SettingsDocument.model_validate(document)
    except ValidationError as error:
        raise InputError(first_problem(error)) from error


def _given(what_if: WhatIf, *names: str) -> dict[str, Any]:
    return {name: value for name in names if (value := getattr(what_if, name)) is not None}


def _literal_pattern(text: str) -> str:
    """A pattern for fnmatch that matches this text only."""
    return "".join(f"[{letter}]" if letter in "*?[" else letter for letter in text)


def _column_mode(line: str) -> tuple[str, str]:
    column, equals, mode = line.rpartition("=")
    if not equals or not column.strip():
        raise InputError(f"metrics_columns: {line!r} is not of the form column = mode")
    return column.strip(), mode.strip()
