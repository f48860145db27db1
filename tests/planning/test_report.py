"""The plan document, the default queries and the step that simulates a table's queries."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest
from pyiceberg.schema import Schema
from pyiceberg.types import (
    BinaryType,
    DateType,
    DecimalType,
    DoubleType,
    IcebergType,
    LongType,
    NestedField,
    StringType,
    TimestampType,
    TimestamptzType,
)
from tests.planning.java_tables import literal_of
from tests.planning.pictures import File, Manifest, picture, spec
from tests.planning.test_scan import DAYS, SCHEMA, days

from planning_health.metadata import save
from planning_health.planning.default_queries import default_queries, sql_literal
from planning_health.planning.predicates import parse_where
from planning_health.planning.report import plan_document
from planning_health.planning.scan import ScanPlanner
from planning_health.run_folder import RunFolder
from planning_health.settings import Query, SettingsDocument, TableRule
from planning_health.stages.conclude import conclude
from planning_health.stages.heaviest_query import heaviest_query
from planning_health.stages.simulate_planning import simulate_planning

if TYPE_CHECKING:
    from pathlib import Path


def test_the_document_has_the_shape_of_the_command_line() -> None:
    metadata = picture(SCHEMA, [DAYS], [Manifest(days(1, 2, size=10)), Manifest(days(9))])
    document = plan_document(metadata, ["d = DATE '1970-01-02' AND upper(s) = 'A'"], files=True)
    assert (document["table"], document["snapshot_id"]) == ("lake.db.t", 1)
    (predicate,) = document["predicates"]
    assert predicate["not_pushed_down"] == ["UPPER(s) = 'A'"]
    assert predicate["data_manifests"] == {"total": 2, "scanned": 1, "skipped": 1}
    assert predicate["delete_manifests"] == {"total": 0, "scanned": 0, "skipped": 0}
    assert predicate["data_files"] == {"total": 3, "result": 1, "skipped": 1}
    assert (predicate["bytes"], predicate["splits"], predicate["tasks"]) == (10, 1, 1)
    assert [file["path"] for file in predicate["files"]] == ["d1"]


def queries(schema: Schema, transform: str, files: list[File]) -> dict[str, str]:
    metadata = picture(schema, [spec((1, transform))], [Manifest(files)])
    return {query.name: query.where for query in default_queries(ScanPlanner(metadata))}


def one_column(column_type: IcebergType) -> Schema:
    return Schema(NestedField(1, "my col", column_type))


def test_default_queries_ask_for_the_middle_value_and_the_latest_days() -> None:
    files = [File(f"f{day}", (day,)) for day in (19900, 19910, 19936)]
    assert queries(one_column(DateType()), "day", files) == {
        "p0: one value": "`my col` = DATE '2024-07-06'",
        "p0: 30 latest days": "`my col` >= DATE '2024-07-03'",
    }


@pytest.mark.parametrize(
    ("column_type", "transform", "value", "where"),
    [
        (TimestamptzType(), "hour", 478464, "`my col` >= TIMESTAMP '2024-08-01 00:00:00+00:00' AND "),
        (TimestampType(), "year", 54, "`my col` >= TIMESTAMP_NTZ '2024-01-01 00:00:00' AND "),
        (DateType(), "month", -1, "`my col` >= DATE '1969-12-01' AND `my col` < DATE '1970-01-01'"),
        (StringType(), "identity", "it's", "`my col` = "),
        (LongType(), "truncate[10]", -10, "`my col` = -10"),
    ],
)
def test_default_queries_of_other_transforms(column_type: IcebergType, transform: str, value: Any, where: str) -> None:
    found = queries(one_column(column_type), transform, [File("f", (value,))])
    assert found["p0: one value"].startswith(where)


def test_default_queries_find_the_partition_that_they_ask_for() -> None:
    schema = one_column(StringType())
    metadata = picture(schema, [spec((1, "identity"))], [Manifest([File("a", ("it's",)), File("b", ("b",))])])
    asked = [query.where for query in default_queries(ScanPlanner(metadata))]
    document = plan_document(metadata, asked, files=True)
    assert [[file["path"] for file in item["files"]] for item in document["predicates"]] == [["b"]]


def test_a_bucket_is_asked_for_by_a_value_that_exists() -> None:
    files = [File("f", (3,), lower={"my col": 34}, upper={"my col": 34}), File("g", (1,))]
    assert queries(one_column(LongType()), "bucket[16]", files) == {"p0: one value": "`my col` = 34"}
    assert queries(one_column(LongType()), "bucket[16]", [File("g", (1,))]) == {}


def test_null_and_nan_partitions_and_void_fields_make_no_query() -> None:
    nothing = [File("f", (None,)), File("g", (float("nan"),))]
    assert queries(one_column(DoubleType()), "identity", nothing) == {}
    assert queries(one_column(LongType()), "void", [File("f", (None,))]) == {}


@pytest.mark.parametrize(
    ("column_type", "value"),
    [
        (LongType(), -5),
        (DoubleType(), 1e300),
        (DoubleType(), -0.5),
        (StringType(), "it's \\ \n%"),
        (BinaryType(), b"\x00\xff"),
        (DateType(), -5),
        (TimestamptzType(), -1),
        (TimestampType(), 1_700_000_000_123_456),
    ],
)
def test_literals_are_read_back_as_the_value_they_were_written_for(column_type: IcebergType, value: Any) -> None:
    where = f"`my col` <=> {sql_literal(column_type, value)}"
    expression: Any = parse_where(where, one_column(column_type)).expression
    assert expression.literals == (literal_of(column_type, value),)


def test_a_decimal_literal_keeps_its_digits() -> None:
    value = literal_of(DecimalType(38, 10), Decimal("12345678901234567890.0000000001"))
    assert sql_literal(DecimalType(38, 10), value.value) == "12345678901234567890.0000000001"


@pytest.fixture
def settings(tmp_path: Path) -> SettingsDocument:
    rules = [{"match": "lake.db.t", "queries": [{"name": "one", "where": "d = '1970-01-02'", "weight": 9}]}]
    return SettingsDocument.model_validate(
        {"home": str(tmp_path), "catalogs": {"lake": {"properties": {"type": "rest"}}}, "tables": rules}
    )


def recorded(settings: SettingsDocument) -> RunFolder:
    metadata = picture(SCHEMA, [DAYS], [Manifest(days(1, 2)), Manifest(days(1, 9)), Manifest(days(20))])
    folder = RunFolder(settings.home, "cli", "run")
    save(metadata, folder.metadata_url(metadata.info.name))
    folder.write_result("measurement", table=metadata.info.name)
    return folder


def test_the_step_plans_the_configured_queries_and_names_the_heaviest(settings: SettingsDocument) -> None:
    folder = recorded(settings)
    (table,) = folder.tables()
    envelope = simulate_planning(settings, folder, table)
    assert envelope.status == "ok"
    result = folder.read_result("planning", table)
    assert result is not None
    assert result.data["heaviest"] == "one"
    assert result.data["predicates"][0]["weight"] == 9
    assert envelope.headline["heaviest_data_manifests_opened"] == 2


def test_without_queries_the_step_asks_what_the_partitioning_invites(settings: SettingsDocument) -> None:
    folder = recorded(settings)
    (table,) = folder.tables()
    plain = settings.model_copy(update={"tables": []})
    envelope = simulate_planning(plain, folder, table)
    assert envelope.headline["queries"] == 2
    result = folder.read_result("planning", table)
    assert result is not None
    assert result.data["queries_are_defaults"]
    assert result.data["costs"]["measured"]["manifests"] == 3


def with_queries(settings: SettingsDocument, *wheres: str) -> SettingsDocument:
    queries = [Query(name=f"q{number}", where=where) for number, where in enumerate(wheres)]
    return settings.model_copy(update={"tables": [TableRule(match="lake.*", queries=queries)]})


def test_a_query_that_does_not_fit_one_of_the_rules_tables_is_left_out_with_its_reason(
    settings: SettingsDocument,
) -> None:
    folder = recorded(settings)
    (table,) = folder.tables()
    asked = with_queries(settings, "x = 1", "d = DATE'1970-01-02'", "d > 'no date'")
    envelope = simulate_planning(asked, folder, table)
    assert (envelope.status, envelope.headline["queries"], envelope.headline["not_planned"]) == ("ok", 1, 2)
    data = folder.require_result("planning", table).data
    assert (data["heaviest"], data["queries_are_defaults"]) == ("q1", False)
    assert data["predicates"][0]["predicted_ms"] > 0
    assert [(query["name"], query["where"]) for query in data["not_planned"]] == [
        ("q0", "x = 1"),
        ("q2", "d > 'no date'"),
    ]
    assert "'x'" in data["not_planned"][0]["reason"]
    assert conclude(asked, folder, expected=["planning"]).status == "ok"
    assert heaviest_query(asked, folder, table).name == "q1"


def test_where_no_configured_query_fits_the_partitioning_is_asked(settings: SettingsDocument) -> None:
    folder = recorded(settings)
    (table,) = folder.tables()
    envelope = simulate_planning(with_queries(settings, "x = 1"), folder, table)
    assert (envelope.headline["queries"], envelope.headline["not_planned"]) == (2, 1)
    assert folder.require_result("planning", table).data["queries_are_defaults"]


def test_a_query_that_is_not_sql_fails_the_step_and_is_named(settings: SettingsDocument) -> None:
    folder = recorded(settings)
    (table,) = folder.tables()
    envelope = simulate_planning(with_queries(settings, "d = DATE'1970-01-02'", "d = = 3"), folder, table)
    assert envelope.status == "failed"
    assert "'d = = 3' is not valid Spark SQL" in str(envelope.reason)
