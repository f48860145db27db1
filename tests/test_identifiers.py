"""Names survive parsing, quoting and paths, whatever characters they hold."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planning_health.errors import InputError
from planning_health.identifiers import TableName, quote_identifier, sql_string

PART = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12).filter(
    lambda part: part.strip() != ""
)
NAMES = st.builds(TableName, PART, st.lists(PART, min_size=1, max_size=3).map(tuple), PART)


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("lake.sales.orders", ("lake", ("sales",), "orders")),
        ("lake.a.b.c", ("lake", ("a", "b"), "c")),
        ("lake.sales.Order-Items", ("lake", ("sales",), "Order-Items")),
        ("lake.sales.`v1.5 `` beta`", ("lake", ("sales",), "v1.5 ` beta")),
    ],
)
def test_a_name_is_parsed_into_its_parts(text: str, parts: tuple[str, tuple[str, ...], str]) -> None:
    name = TableName.parse(text)
    assert (name.catalog, name.namespace, name.name) == parts


@pytest.mark.parametrize(
    "text", ["", "orders", "sales.orders", "lake..orders", "lake.sales.", ".a.b", "lake.sales.`x", "a.b. "]
)
def test_a_malformed_name_is_bad_input_that_is_named(text: str) -> None:
    with pytest.raises(InputError, match=r"catalog\.namespace\.table") as caught:
        TableName.parse(text)
    assert repr(text) in str(caught.value)


@given(NAMES)
def test_the_display_of_a_name_parses_back_to_it(name: TableName) -> None:
    assert TableName.parse(str(name)) == name


@given(NAMES)
def test_a_path_segment_leads_back_to_the_name_and_is_one_safe_segment(name: TableName) -> None:
    segment = name.path_segment
    assert TableName.from_path_segment(name.catalog, segment) == name
    assert "/" not in segment
    assert segment.isascii()


@given(NAMES)
def test_no_part_of_a_name_ends_its_quotes_in_sql(name: TableName) -> None:
    rest = name.sql
    for part in (name.catalog, *name.identifier):
        quoted = quote_identifier(part)
        assert rest.startswith(quoted)
        rest = rest[len(quoted) :].removeprefix(".")
        assert quoted[1:-1].replace("``", "").count("`") == 0
    assert rest == ""


@given(st.text())
def test_a_string_literal_holds_no_bare_quote(value: str) -> None:
    inner = sql_string(value)[1:-1]
    unescaped = inner.replace("\\\\", "").replace("\\'", "")
    assert "'" not in unescaped
    assert "\n" not in inner


def test_only_known_metadata_tables_can_be_named() -> None:
    name = TableName.parse("lake.sales.orders")
    assert name.metadata_table_sql("manifests") == "`lake`.`sales`.`orders`.`manifests`"
    with pytest.raises(InputError, match="'nope'"):
        name.metadata_table_sql("nope")
