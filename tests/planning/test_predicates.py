"""Spark SQL predicates to Iceberg expressions; the comparison with Spark itself is an integration test."""

from __future__ import annotations

import datetime as dt
import re
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest
from pyiceberg.schema import Schema
from pyiceberg.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    IntegerType,
    LongType,
    NestedField,
    StringType,
    StructType,
    TimestampType,
    TimestamptzType,
    UUIDType,
)
from tests.planning.pictures import Manifest, picture, spec
from tests.planning.test_scan import DAYS, days
from tests.planning.test_scan import SCHEMA as DATES

from planning_health.errors import InputError
from planning_health.planning.expressions import bind
from planning_health.planning.predicates import columns_in, parse_where
from planning_health.planning.report import plan_document

NESTED = StructType(NestedField(30, "a", IntegerType()), NestedField(31, "c", StringType()))
SCHEMA = Schema(
    NestedField(1, "b", BooleanType()),
    NestedField(2, "i", IntegerType()),
    NestedField(3, "l", LongType()),
    NestedField(4, "f", FloatType()),
    NestedField(5, "d", DoubleType()),
    NestedField(6, "dt", DateType()),
    NestedField(7, "ts", TimestamptzType()),
    NestedField(8, "tn", TimestampType()),
    NestedField(9, "s", StringType()),
    NestedField(10, "bin", BinaryType()),
    NestedField(11, "de", DecimalType(9, 2)),
    NestedField(12, "r", IntegerType(), required=True),
    NestedField(13, "n", NESTED),
    NestedField(14, "odd name", StringType()),
    NestedField(15, "u", UUIDType()),
    NestedField(16, "fx", FixedType(2)),
    NestedField(17, "R2", IntegerType()),
)
NOW = dt.datetime(2026, 3, 1, 23, 30, tzinfo=dt.UTC)


def pushed(where: str, zone: str = "UTC") -> str:
    return str(parse_where(where, SCHEMA, zone=zone, now=NOW).expression)


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ("i = 5", "(i is not null and i = 5)"),
        ("5 < i", "(i is not null and i > 5)"),
        ("r = 5", "r = 5"),
        ("i <> 5", "(i is not null and i != 5)"),
        ("i = 5 OR l = 3", "(i = 5 or l = 3)"),
        ("i BETWEEN 1 AND 3", "((i is not null and i >= 1) and i <= 3)"),
        ("i NOT BETWEEN 1 AND 3", "(i < 1 or i > 3)"),
        ("i IN (1, 2)", "i in (1, 2)"),
        ("i NOT IN (1, 2)", "(i is not null and i not in (1, 2))"),
        ("i NOT IN (1, NULL)", "false"),
        ("i <=> NULL", "i is null"),
        ("i IS DISTINCT FROM 5", "i != 5"),
        ("NOT (i = 5 OR l = 3)", "(((i is not null and l is not null) and i != 5) and l != 3)"),
        ("s LIKE 'x%'", '(s is not null and s starts with "x")'),
        ("s NOT LIKE 'x%'", '(s is not null and s not starts with "x")'),
        ("s LIKE 'x'", '(s is not null and s = "x")'),
        ("n.a = 5", "(n.a is not null and n.a = 5)"),
        ("lake.db.t.i = 5", "(i is not null and i = 5)"),
        ("`odd name` = 'x'", '(odd name is not null and odd name = "x")'),
        ("r2 = 1", "(R2 is not null and R2 = 1)"),
        ("b", "(b is not null and b = True)"),
        ("NOT b", "(b is not null and b != True)"),
        ("b IS TRUE", "b = True"),
        ("r IS NULL", "false"),
        ("r IS NOT NULL", "true"),
        ("1 = 1", "true"),
        ("i = NULL", "false"),
        ("bin = X'1F'", "(bin is not null and bin = 1F)"),
        ("fx = X'1F'", "fx is not null"),
        ("u = '00000000-0000-0000-0000-000000000001'", "(u is not null and u = 00000000-0000-0000-0000-000000000001)"),
        ("u = 'x'", "u is not null"),
    ],
)
def test_conditions(where: str, expected: str) -> None:
    assert pushed(where) == expected


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ("i < 1.5", "(i is not null and i <= 1)"),
        ("i >= 1.5", "(i is not null and i > 1)"),
        ("i = 1.5", "false"),
        ("i <> 1.5", "(i is not null and i is not null)"),
        ("i < 5000000000", "(i is not null and i is not null)"),
        ("i > 5000000000", "false"),
        ("f <= 0.1", "(f is not null and f <= 0.09999999403953552)"),
        ("f < 1.5", "(f is not null and f < 1.5)"),
        ("de < 1.555", "(de is not null and de <= 1.55)"),
        ("d = -0.0", "(d is not null and d = 0.0)"),
        ("d = double('nan')", "(d is not null and d is nan)"),
        ("dt > TIMESTAMP '2024-01-01 12:00:00'", "(dt is not null and dt > 2024-01-01)"),
        ("dt >= TIMESTAMP '2024-01-01 00:00:00'", "(dt is not null and dt >= 2024-01-01)"),
        ("CAST(i AS BIGINT) = 5", "(i is not null and i = 5)"),
    ],
)
def test_casts_move_to_the_constant(where: str, expected: str) -> None:
    assert pushed(where) == expected


@pytest.mark.parametrize(
    ("where", "day"),
    [
        ("dt = current_date()", "2026-03-01"),
        ("dt = date_sub(current_date(), 7)", "2026-02-22"),
        ("dt = date_add(current_date, 2)", "2026-03-03"),
        ("dt = current_date() - INTERVAL 1 MONTH", "2026-02-01"),
        ("dt = current_date - 1", "2026-02-28"),
        ("dt = add_months(DATE '2024-01-31', 1)", "2024-02-29"),
        ("dt = last_day(DATE '2023-02-01')", "2023-02-28"),
        ("dt = trunc(DATE '2024-05-15', 'YEAR')", "2024-01-01"),
        ("dt = '2024-2-3'", "2024-02-03"),
        ("dt = '2024'", "2024-01-01"),
        ("dt = CAST('2024-02-03' AS DATE)", "2024-02-03"),
        ("dt = make_date(2024, 2, 3)", "2024-02-03"),
    ],
)
def test_dates_are_folded(where: str, day: str) -> None:
    assert pushed(where) == f"(dt is not null and dt = {day})"


@pytest.mark.parametrize(
    ("where", "instant"),
    [
        ("ts = '2024-01-01 10:00:00+02:00'", "2024-01-01T08:00:00.000000+00:00"),
        ("ts = '2024-01-01 10:00:00'", "2024-01-01T09:00:00.000000+00:00"),
        ("ts = TIMESTAMP '2024-07-01 10:00:00.5'", "2024-07-01T08:00:00.500000+00:00"),
        ("ts = DATE '2024-01-01'", "2023-12-31T23:00:00.000000+00:00"),
        ("ts = date_trunc('DAY', now())", "2026-03-01T23:00:00.000000+00:00"),
        ("ts = now() - INTERVAL 1 HOUR", "2026-03-01T22:30:00.000000+00:00"),
        ("ts = TIMESTAMP_NTZ '2024-01-01 10:00:00'", "2024-01-01T09:00:00.000000+00:00"),
    ],
)
def test_timestamps_without_a_zone_are_in_the_sessions(where: str, instant: str) -> None:
    assert pushed(where, "Europe/Berlin") == f"(ts is not null and ts = {instant})"


def test_today_depends_on_the_session_zone() -> None:
    assert pushed("dt = current_date()", "Europe/Berlin") == "(dt is not null and dt = 2026-03-02)"


def test_wall_clock_columns_compare_with_wall_clock_times() -> None:
    expected = "(tn is not null and tn = 2024-01-01T10:00:00.000000)"
    assert pushed("tn = '2024-01-01 10:00:00'", "Europe/Berlin") == expected
    assert pushed("tn = TIMESTAMP '2024-01-01 10:00:00+01:00'", "Europe/Berlin") == expected


def test_a_timestamps_date_becomes_a_range() -> None:
    day = "ts >= 2024-01-01T00:00:00.000000+00:00 and ts < 2024-01-02T00:00:00.000000+00:00"
    assert pushed("date(ts) = '2024-01-01'") == f"(ts is not null and ({day}))"
    assert pushed("CAST(ts AS DATE) > DATE '2024-01-01'").endswith("ts >= 2024-01-02T00:00:00.000000+00:00)")


@pytest.mark.parametrize(
    ("where", "rest", "expression"),
    [
        ("upper(s) = 'A'", ["UPPER(s) = 'A'"], "s is not null"),
        ("i = 5 AND upper(s) = 'A'", ["UPPER(s) = 'A'"], "((i is not null and s is not null) and i = 5)"),
        ("i = 5 OR upper(s) = 'A'", ["i = 5 OR UPPER(s) = 'A'"], "true"),
        ("s LIKE 'a%b'", ["s LIKE 'a%b'"], '(s is not null and s starts with "a")'),
        ("s LIKE '%b'", ["s LIKE '%b'"], "s is not null"),
        ("i = l", ["i = l"], "(i is not null and l is not null)"),
        ("isnan(d)", ["ISNAN(d)"], "true"),
        ("s = 5", ["s = 5"], "s is not null"),
        ("i IN (SELECT 1)", ["i IN (SELECT 1)"], "true"),
        ("coalesce(i, 0) = 5", ["COALESCE(i, 0) = 5"], "true"),
        ("NOT (i = 5 AND upper(s) = 'A')", ["NOT (i = 5 AND UPPER(s) = 'A')"], "true"),
    ],
)
def test_what_is_not_pushed_down_is_named(where: str, rest: list[str], expression: str) -> None:
    parsed = parse_where(where, SCHEMA, now=NOW)
    assert list(parsed.not_pushed_down) == rest
    assert str(parsed.expression) == expression


@pytest.mark.parametrize(
    ("where", "message"),
    [
        ("i = ", "not valid Spark SQL"),
        ("i = 5)", "not valid Spark SQL"),
        ("", "expected one condition"),
        ("i = 1; DROP TABLE t", "expected one condition"),
        ("SELECT 1", "expected one condition"),
        ("nope = 5", "unknown column 'nope'"),
        ("upper(nope) = 'A'", "unknown column 'nope'"),
        ("n.nope = 5", "unknown column 'n.nope'"),
        ("dt = 'abc'", "'abc' is not a date"),
        ("dt = '2024-13-01'", "is not a date"),
        ("ts = 'abc'", "'abc' is not a timestamp"),
        ("i = 'abc'", "'abc' is not a number"),
        ("dt = 5", "cannot be compared with 5"),
        ("b = 1", "cannot be compared with 1"),
        ("i", "expected a boolean column"),
        ("5", "is no condition"),
        ("i = 1 / 0", "1 / 0"),
    ],
)
def test_malformed_predicates_are_input_errors_that_name_the_fault(where: str, message: str) -> None:
    with pytest.raises(InputError, match=re.escape(message)):
        parse_where(where, SCHEMA, now=NOW)


@pytest.mark.parametrize(
    ("where", "message"),
    [
        ("odd_name = 'x'", "unknown column 'odd_name', did you mean 'odd name'? The table has b, i, l,"),
        ("N.aa = 1", "unknown column 'N.aa', did you mean 'n.a'? The table has b, i,"),
        ("s = cust-00042", "unknown column 'cust': a text literal needs quotes: 'cust-00042'"),
        ("s IN (cust-00042, 'x') AND i = 1", "unknown column 'cust': a text literal needs quotes: 'cust-00042'"),
        ("s = zurich AND i = 1", "unknown column 'zurich': a text literal needs quotes: 'zurich'"),
        ("s = odd_name", "unknown column 'odd_name', did you mean 'odd name'?"),
        ("i = nope + 1", "unknown column 'nope'. The table has"),
        ("s = `nope`", "unknown column 'nope'. The table has"),
        ("ts >= 2026-11-10", "cannot be compared with 2005; a date is written DATE'2026-11-10'"),
        ("dt BETWEEN 2026-11-01 AND 2026-11-05", "; a date is written DATE'2026-11-0"),
        ("dt IN (2026-11-05)", "; a date is written DATE'2026-11-05'"),
        ("CAST(ts AS DATE) = 2026-11-05", "; a date is written DATE'2026-11-05'"),
    ],
)
def test_what_was_perhaps_meant_is_told(where: str, message: str) -> None:
    with pytest.raises(InputError, match=re.escape(message)):
        parse_where(where, SCHEMA, now=NOW)


def test_of_many_columns_the_first_are_named() -> None:
    wide = Schema(*(NestedField(n, f"c{n}", IntegerType()) for n in range(1, 61)))
    with pytest.raises(InputError, match=r"unknown column 'nope'\. The table has c1, c2, .*, c10, … and 50 more$"):
        parse_where("nope = 1", wide)


def test_the_name_of_a_partition_field_is_told_from_an_unknown_column() -> None:
    specs = [spec((2, "day")), spec((2, "void"), (3, "identity"), (1, "bucket[16]"), spec_id=1)]
    metadata = picture(DATES, specs, [Manifest(days(1))])
    for name, told in {
        "P0": "P0 is a partition field, days(d): filter d, and planning uses it",
        "p1": "p1 is a partition field: filter s, and planning uses it",
        "p2": "p2 is a partition field, bucket(16, id): filter id, and planning uses it",
    }.items():
        with pytest.raises(InputError, match=re.escape(f"unknown column '{name}': {told}")):
            plan_document(metadata, [f"{name} = 1"])
    with pytest.raises(InputError, match=r"unknown column 'p3'\. The table has id, d, s"):
        plan_document(metadata, ["p3 = 1"])


def test_an_unknown_zone_is_an_input_error() -> None:
    with pytest.raises(InputError, match="Mars"):
        parse_where("i = 5", SCHEMA, zone="Mars")


def test_columns_are_named_as_the_schema_names_them() -> None:
    assert parse_where("I = 5 AND N.a > 1 OR upper(S) = 'A'", SCHEMA).columns == {"i", "n.a", "s"}
    with pytest.raises(InputError, match="unknown column 'I'"):
        parse_where("I = 5", SCHEMA, case_sensitive=True)


_DEEP = {
    "disjunction": " OR ".join(f"i = {n}" for n in range(3000)),
    "conjunction": " AND ".join(f"i <> {n}" for n in range(3000)),
    "parentheses": "(" * 150 + "i = 1" + ")" * 150,
    "negations": "NOT " * 300 + "i = 1",
    "sum": "i = " + " + ".join(["1"] * 1200),
    "signs": "i = " + "- " * 2000 + "1",
}


@pytest.mark.parametrize("where", _DEEP.values(), ids=_DEEP)
def test_long_and_deep_predicates_are_pushed_down_and_can_be_walked(where: str) -> None:
    parsed = parse_where(where, SCHEMA, now=NOW)
    assert parsed.not_pushed_down == ()
    assert str(bind(parsed.expression, SCHEMA))


@pytest.mark.parametrize("where", ["(" * 5000 + "b" + ")" * 5000, "i = 1 AND (l = 1 OR (" * 150 + "b" + "))" * 150])
def test_nesting_without_end_is_an_input_error_of_one_short_line(where: str) -> None:
    with pytest.raises(InputError, match="nested too deeply") as caught:
        parse_where(where, SCHEMA, now=NOW)
    assert len(str(caught.value)) < 300
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "where",
    [
        "dt = DATE'9999-12-31' + INTERVAL 1 DAY",
        "dt < date_add(DATE'9999-12-31', 1)",
        "dt = make_date(10000, 1, 1)",
        "dt = DATE'10000-01-01'",
        "dt = '10000-01-01'",
        "ts = '10000-01-01 00:00:00'",
        "dt = add_months(DATE'2026-01-01', 999999)",
        "CAST(ts AS DATE) = DATE'9999-12-31'",
        "ts < timestamp_micros(9000000000000000000)",
    ],
)
def test_times_beyond_the_year_9999_are_left_to_spark(where: str) -> None:
    parsed = parse_where(where, SCHEMA, now=NOW)
    assert len(parsed.not_pushed_down) == 1


@pytest.mark.parametrize(
    "where",
    [
        "dt = add_months(DATE'2026-01-01', 99999999)",
        "dt = date_sub(current_date(), 999999999999)",
        "ts = timestamp_micros(100000000000000000000)",
        "dt = make_date(2026, 2, 30)",
        "dt = make_date('a', 1, 1)",
        "dt = make_date(2026)",
        "dt = make_date(12026, 2, 30)",
        "dt = '12026-02-30'",
        "dt = current_date() + 99999999999",
        "date(ts) = 5",
        "bin > 1",
        "any(b)",
        "i = CAST('a' AS INT)",
        "i = CAST(99999999999 AS INT)",
        "i = CAST(1e400 AS INT)",
        "de = CAST(1000 AS DECIMAL(3, 2))",
        "de = CAST(1 AS DECIMAL(50, 2))",
        "i = " + "1" * 5000,
        "i = 1 % 0",
        "i = 1 DIV 0",
        "i = -'a'",
        "i = true + 1",
        "dt = date_add(DATE'2026-01-01', 'x')",
        "X'11' > 1",
        "true > 1",
        "'a' = 1",
        "i IN ()",
        "*",
        "i = *",
        "sum(i) > 1",
        "i = :x",
        "i = ?",
        "row_number() OVER (ORDER BY i) = 1",
    ],
)
def test_what_spark_refuses_is_an_input_error_of_one_short_line(where: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_where(where, SCHEMA, now=NOW)
    assert len(str(caught.value)) < 420
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ("1 = '1'", "true"),
        ("'2026-01-01' = DATE'2026-01-01'", "true"),
        ("DATE'2026-01-01' > TIMESTAMP'2026-01-01 00:00:00'", "false"),
        ("DATE'2026-01-01' = TIMESTAMP'2026-01-01 00:00:00'", "true"),
        ("TIMESTAMP_NTZ'2026-01-01 00:00:00' = TIMESTAMP'2026-01-01 00:00:00'", "true"),
        ("X'61' = 'a'", "true"),
        ("CAST('nan' AS double) > 1", "true"),
        ("CAST('nan' AS double) = CAST('nan' AS double)", "true"),
        ("CAST('nan' AS double) <= 1", "false"),
        ("1.5 < 2e0", "true"),
        ("-7 % 3 = -1", "true"),
        ("-7 DIV 2 = -3", "true"),
        ("NULL > 1", "false"),
        ("i = try_cast('a' AS INT)", "false"),
        ("- '1' = -1", "true"),
        ("CAST(5 AS DECIMAL(38, 37)) = 5", "true"),
    ],
)
def test_constants_compare_in_sparks_order(where: str, expected: str) -> None:
    parsed = parse_where(where, SCHEMA, now=NOW)
    assert parsed.not_pushed_down == ()
    assert expected in str(parsed.expression)


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ("s = 'it''s'", '(s is not null and s = "it\'s")'),
        ("s LIKE 'it''%'", '(s is not null and s starts with "it\'")'),
        ('s = "it""s"', '(s is not null and s = "it"s")'),
        ("s = 'it\"\"s'", '(s is not null and s = "it""s")'),
        ("s = ''''", '(s is not null and s = "\'")'),
        ("s = ''", '(s is not null and s = "")'),
        (r"s = 'a\\''b'", '(s is not null and s = "a\\\'b")'),
        (r"s = 'it\'s'", '(s is not null and s = "it\'s")'),
        ("s = 'a' 'b'", '(s is not null and s = "ab")'),
        ("s = 'a' /* ''' */", '(s is not null and s = "a")'),
    ],
)
def test_a_doubled_quote_in_a_string_is_one_quote(where: str, expected: str) -> None:
    assert pushed(where) == expected


def test_a_predicate_of_thousands_of_parts_is_planned_as_a_short_one_is() -> None:
    metadata = picture(DATES, [DAYS], [Manifest(days(1, 2, size=10)), Manifest(days(9))])
    wheres = [
        " OR ".join(f"d = DATE '1970-01-02' - {n}" for n in range(3000)),
        "NOT (" + " OR ".join(["d <> DATE '1970-01-02'"] * 3000) + ")",
        "d = DATE '1970-01-02' AND (s = 'a' OR (" * 60 + "s = 'b'" + "))" * 60,
    ]
    document = plan_document(metadata, wheres, files=True)
    assert [predicate["data_files"]["result"] for predicate in document["predicates"]] == [1, 1, 1]


def test_parsing_in_many_threads_at_once_leaves_pythons_recursion_limit_alone() -> None:
    before = sys.getrecursionlimit()
    wheres = [_DEEP["parentheses"], _DEEP["sum"], "i = 1"] * 8
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(columns_in, wheres)) == [{"i"}] * len(wheres)
    assert sys.getrecursionlimit() == before
