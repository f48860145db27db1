"""A partition spec is read as Spark SQL writes it."""

from __future__ import annotations

import pytest
from pyiceberg.types import DateType, StringType
from tests.health.builder import TableBuilder

from planning_health.errors import InputError
from planning_health.planning.spec_text import parse_spec, spec_name, spec_text


@pytest.mark.parametrize(
    ("text", "fields"),
    [
        ("days(ts), bucket(16, id)", [("ts", "day"), ("id", "bucket[16]")]),
        (" Bucket( 4 ,`a b`.`c``d` ) ,country", [("a b.c`d", "bucket[4]"), ("country", "identity")]),
        ("truncate(name, 3),hour(at.utc)", [("name", "truncate[3]"), ("at.utc", "hour")]),
        (
            "years(d), months(d), identity(x), date(e), date_hour(e)",
            [
                ("d", "year"),
                ("d", "month"),
                ("x", "identity"),
                ("e", "day"),
                ("e", "hour"),
            ],
        ),
        ("Unpartitioned", []),
    ],
)
def test_fields_are_read_with_their_transforms(text: str, fields: list[tuple[str, str]]) -> None:
    assert parse_spec(text) == fields


@pytest.mark.parametrize(
    "text", ["", "days(ts", "bucket(id)", "bucket(0, id)", "zorder(a)", "a,", "a b", "days(4, ts)"]
)
def test_what_is_no_spec_is_named_with_what_was_expected(text: str) -> None:
    with pytest.raises(InputError, match="expected fields like days"):
        parse_spec(text)


def test_a_spec_is_written_as_it_is_read() -> None:
    fields = [("d", "day"), ("ship date", "identity"), ("d", "bucket[16]"), ("ship date", "truncate[4]")]
    info = TableBuilder({"d": DateType(), "ship date": StringType()}, [fields, []]).build().info
    assert spec_name(info, 0) == "spec 0 (days(d), `ship date`, bucket(16, d), truncate(4, `ship date`))"
    assert parse_spec(spec_text(info, info.specs[0])) == fields
    assert spec_name(info, 1) == "spec 1 (unpartitioned)"
    assert spec_name(info, 7) == "spec 7"
