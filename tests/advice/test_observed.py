"""The observed workload of a table: summed, in the table's own names, and kept in a run's folder."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

from pyiceberg.schema import Schema
from pyiceberg.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    LongType,
    NestedField,
    StringType,
    StructType,
    TimestampType,
    UUIDType,
)

from planning_health.advice.filter_text import parse_filters
from planning_health.advice.observed import Observation, observe, observed_columns
from planning_health.identifiers import TableName
from planning_health.planning.expressions import Operation, and_, bind, predicate, to_iceberg_json
from planning_health.run_folder import RunFolder
from planning_health.settings import SettingsDocument
from planning_health.stages.observed_workload import record_observations, recorded_observations

SCHEMA = Schema(
    NestedField(1, "id", LongType()),
    NestedField(2, "Site", StringType()),
    NestedField(3, "v", DoubleType()),
    NestedField(4, "amount", DecimalType(12, 2)),
    NestedField(5, "d", DateType()),
    NestedField(6, "ts", TimestampType()),
    NestedField(7, "u", UUIDType()),
    NestedField(8, "raw", BinaryType()),
    NestedField(9, "flag", BooleanType()),
    NestedField(10, "place", StructType(NestedField(11, "lat", DoubleType()))),
)
NAME = TableName("lake", ("sales",), "orders")
VALUES = (
    "amount = 12.50, v < 0.1, d = 20456, ts >= 1767225600500000, u = f79c3e09-677c-4bbd-a479-3f349cb785e7, "
    "raw = X'00FF', flag = true, Site IN ('a', 'b'), place.lat > 1.5, id < 7"
)


def seen(text: str, weight: float = 1.0, table: str | None = NAME.dotted) -> Observation:
    return Observation("event log", table, weight, filter=parse_filters(text).expression)


def test_equal_filters_add_up_whatever_the_case_of_their_columns() -> None:
    found = observe(NAME, SCHEMA, [seen("SITE = 'a'", 2), seen("site = 'a'"), seen("id = 3", 9)])
    assert [(str(item.expression), item.weight, item.columns) for item in found.filters] == [
        ("id = 3", 9.0, frozenset({"id"})),
        ('Site = "a"', 3.0, frozenset({"Site"})),
    ]
    assert found.filtered_by("Site") == 3


def test_values_take_their_columns_types() -> None:
    found = observe(NAME, SCHEMA, [seen(VALUES)])
    assert not found.unread
    assert "amount = 12.50" in str(found.filters[0].expression)
    expected = predicate(Operation.LT, "v", 0.1)
    assert str(expected) in str(found.filters[0].expression)


def test_a_filter_on_a_column_that_is_gone_is_said_and_left_out() -> None:
    found = observe(NAME, SCHEMA, [seen("gone = 3", 4), seen("id = 'text'")])
    assert found.filters == ()
    assert sorted(found.unread.values()) == [1, 4]
    assert any("unknown column 'gone'" in reason for reason in found.unread)


def test_what_may_be_about_any_table_counts_where_all_columns_exist() -> None:
    maximum = Observation("event log", None, bounds_of=frozenset({"ID"}))
    other = Observation("event log", None, bounds_of=frozenset({"id", "elsewhere"}))
    found = observe(NAME, SCHEMA, [maximum, other])
    assert found.bounds_of == {"id": 1}
    assert not found.unread


def test_a_filter_that_cannot_be_read_keeps_the_columns_that_it_names() -> None:
    found = observe(NAME, SCHEMA, [Observation("event log", NAME.dotted, unread="filter f(site) = 3 OR valid")])
    assert found.hidden == {"Site": 1}
    assert found.unread == {"filter f(site) = 3 OR valid": 1}


def test_columns_to_record_are_those_of_the_table_and_those_of_unknown_ones() -> None:
    observations = [
        seen("id = 3"),
        seen("x = 3", table="lake.sales.other"),
        Observation("event log", None, counts_of=frozenset({"v"})),
    ]
    assert observed_columns(NAME, observations) == {"id", "v"}


def test_observations_survive_a_result_file() -> None:
    item = Observation(
        "event log",
        NAME.dotted,
        3.0,
        filter=and_(parse_filters(VALUES).expression, predicate(Operation.IS_NULL, "id")),
        hidden=frozenset({"a"}),
        row_level=frozenset({"b"}),
        unread="why",
    )
    again = Observation.from_json(json.loads(json.dumps(item.as_json())))
    assert again.columns == item.columns
    assert again.weight == item.weight
    assert _bound(again) == _bound(item)


def _bound(item: Observation) -> object:
    found = observe(NAME, SCHEMA, [replace(item, hidden=frozenset(), row_level=frozenset(), unread="")])
    assert not found.unread
    return to_iceberg_json(bind(found.filters[0].expression, SCHEMA))


def settings_with(tmp_path: Path, **workload: list[str]) -> SettingsDocument:
    return SettingsDocument.model_validate(
        {"home": str(tmp_path), "catalogs": {"lake": {"properties": {"type": "rest"}}}, "workload": workload}
    )


def test_a_run_reads_its_logs_once_and_keeps_what_they_tell(tmp_path: Path) -> None:
    reports = tmp_path / "reports.jsonl"
    line = {"table-name": NAME.dotted, "filter": {"type": "eq", "term": "id", "value": 3}, "metrics": {}}
    reports.write_text("\n".join([json.dumps(line)] * 5))
    folder = RunFolder(str(tmp_path), "cli", "r1")
    found = record_observations(settings_with(tmp_path, scan_reports=[str(reports)]), folder)
    assert [item.weight for item in found] == [5.0]
    assert recorded_observations(folder) == found


def test_logs_that_cannot_be_read_are_said_and_the_run_goes_on(tmp_path: Path) -> None:
    folder = RunFolder(str(tmp_path), "cli", "r1")
    settings = settings_with(tmp_path, event_logs=[str(tmp_path / "missing")])
    assert record_observations(settings, folder) == recorded_observations(folder) == []
    result = folder.read_result("observed")
    assert result is not None
    assert result.status == "failed"
    assert "does not exist" in str(result.reason)
