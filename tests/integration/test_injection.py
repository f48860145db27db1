"""Spark's own parser reads back what was quoted, whatever it holds: a name as that name, a value as that value."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyiceberg.schema import Schema
from pyiceberg.types import LongType, NestedField

from planning_health.errors import InputError
from planning_health.identifiers import TableName, quote_identifier, sql_string
from planning_health.maintenance import commands
from planning_health.planning.predicates import parse_where

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

PIECES = [
    "`",
    "``",
    "'",
    "''",
    '"',
    "\\",
    "\\'",
    "\\u0027",
    "\\047",
    "\n",
    "\r",
    ";",
    "--",
    "/*",
    "*/",
    ")",
    "${env:HOME}",
]
TEXT = st.lists(st.sampled_from(PIECES) | st.characters(codec="utf-8"), min_size=1, max_size=8).map("".join)
PART = TEXT.filter(lambda part: part.strip() != "" and "${" not in part)
MANY = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.fixture(scope="module")
def parser(spark: SparkSession) -> Any:
    return Parser(spark._jsparkSession.sessionState().sqlParser())


class Parser:
    """Spark's parser, as an object of Python's own: hypothesis prints what a test was given."""

    def __init__(self, java: Any) -> None:
        self._java = java

    def __getattr__(self, name: str) -> Any:
        return getattr(object.__getattribute__(self, "_java"), name)

    def __repr__(self) -> str:
        return "parser"


@MANY
@given(st.lists(PART, min_size=3, max_size=4))
def test_a_quoted_name_is_that_name(parser: Any, parts: list[str]) -> None:
    name = TableName(parts[0], tuple(parts[1:-1]), parts[-1])
    read = parser.parseMultipartIdentifier(name.sql)
    assert [read.apply(i) for i in range(read.size())] == parts


@MANY
@given(TEXT)
def test_a_quoted_value_is_that_value(parser: Any, value: str) -> None:
    literal = parser.parseExpression(sql_string(value))
    assert literal.getClass().getSimpleName() == "Literal"
    assert literal.value().toString() == value


@MANY
@given(PART, TEXT, TEXT)
def test_a_statement_sets_the_property_and_nothing_else(parser: Any, part: str, key: str, value: str) -> None:
    (statement,) = commands.property_changes(TableName("lake", ("a",), part), {key: value})
    plan = parser.parsePlan(statement)
    assert plan.getClass().getSimpleName() == "SetTableProperties"
    assert (plan.properties().size(), plan.properties().apply(key)) == (1, value)


@MANY
@given(PART, PART)
def test_a_call_has_the_arguments_that_it_was_given(parser: Any, part: str, field: str) -> None:
    table = TableName("lake", ("a",), part)
    plan = parser.parsePlan(commands.rewrite_manifests(table, 3, [field]))
    arguments = plan.args()
    assert arguments.size() == 4
    assert arguments.apply(0).value().value().toString() == table.sql
    (quoted,) = [arguments.apply(3).value().children().apply(0)]
    assert quoted.value().toString() == field
    assert quote_identifier(part) in table.sql


@pytest.mark.parametrize("value", ["${env:HOME}", "a ${HOME} b", "${spark:x}", "$ {env:HOME}", "$${env:HOME}", "${{}"])
def test_no_variable_is_put_into_a_value_and_no_name_may_hold_one(parser: Any, value: str) -> None:
    assert parser.parseExpression(sql_string(value)).value().toString() == value
    if "${" in value:
        with pytest.raises(InputError, match="cannot be used in Spark SQL"):
            quote_identifier(value)


@pytest.mark.parametrize("where", ["id = 1; DROP TABLE x", "id = 1 UNION SELECT 1", "1 = 1) OR (1 = 1", "id = 1 /*"])
def test_a_filter_is_an_expression_or_an_error(where: str) -> None:
    schema = Schema(NestedField(1, "id", LongType()))
    with pytest.raises(InputError):
        parse_where(where, schema)
