"""Contradictions between metadata and files are found, and nothing else is taken for one."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyiceberg.types import DateType, DoubleType, IntegerType, PrimitiveType, StringType, UUIDType
from tests.health.builder import DELETED, Entry, TableBuilder, encoded

from planning_health.health.integrity import Integrity
from planning_health.health.picture import Picture


def integrity(builder: TableBuilder) -> Integrity:
    return Integrity(Picture(builder.build()))


def with_summary(
    kind: PrimitiveType, value: Any, lower: Any, upper: Any, *, null: bool = False, nan: bool | None = False
) -> Integrity:
    bounds = {"lower_bound": encoded(lower, kind), "upper_bound": encoded(upper, kind)}
    summary = {"contains_null": null, "contains_nan": nan, **bounds}
    builder = TableBuilder({"c": kind}, [[("c", "identity")]])
    return integrity(builder.manifest(Entry((value,)), summaries=[summary]))


@pytest.mark.parametrize(
    ("kind", "value", "lower", "upper", "flags"),
    [
        (StringType(), "abcd", "abc", "abc", {}),  # an upper bound that was cut and not rounded up
        (IntegerType(), 5, None, None, {}),  # no bounds, and yet no null either
        (IntegerType(), None, 1, 5, {}),
        (DoubleType(), math.nan, 1.0, 5.0, {}),
        (DoubleType(), -0.0, 0.0, 1.0, {}),
        (IntegerType(), 9, 1, 5, {"null": True}),
    ],
)
def test_an_entry_outside_its_summary_is_found(
    kind: PrimitiveType, value: Any, lower: Any, upper: Any, flags: dict[str, bool]
) -> None:
    assert with_summary(kind, value, lower, upper, **flags).entries_outside == 1


@pytest.mark.parametrize(
    ("kind", "value", "lower", "upper", "flags"),
    [
        (IntegerType(), 5, 5, 5, {}),
        (IntegerType(), None, None, None, {"null": True}),
        (DoubleType(), math.nan, None, None, {"nan": True}),
        (DoubleType(), math.nan, 1.0, 1.0, {"nan": None}),  # older writers do not say
        (StringType(), "é", "e", "ü", {}),
    ],
)
def test_an_entry_inside_its_summary_is_left_alone(
    kind: PrimitiveType, value: Any, lower: Any, upper: Any, flags: dict[str, bool | None]
) -> None:
    assert with_summary(kind, value, lower, upper, **flags).entries_outside == 0  # type: ignore[arg-type]


def test_inverted_bounds_are_found() -> None:
    found = with_summary(IntegerType(), 3, 5, 1)
    assert (found.inverted_summaries, found.entries_outside) == (1, 1)


def test_undecodable_bounds_contradict_nothing() -> None:
    summary = {"contains_null": False, "contains_nan": False, "lower_bound": b"x", "upper_bound": b"x"}
    builder = TableBuilder({"c": IntegerType()}, [[("c", "identity")]]).manifest(Entry((3,)), summaries=[summary])
    assert integrity(builder).entries_outside == 0


def test_deleted_entries_may_lie_anywhere() -> None:
    builder = TableBuilder({"c": IntegerType()}, [[("c", "identity")]])
    one = {"contains_null": False, "contains_nan": False, "lower_bound": b"\1\0\0\0", "upper_bound": b"\1\0\0\0"}
    assert integrity(builder.manifest(Entry((1,)), Entry((8,), status=DELETED), summaries=[one])).entries_outside == 0


def test_summaries_are_read_by_the_manifests_own_spec() -> None:
    columns: dict[str, PrimitiveType] = {"p": IntegerType(), "q": StringType()}
    builder = TableBuilder(columns, [[("q", "identity"), ("p", "identity")], [("p", "identity")]], dropped=["q"])
    builder.manifest(Entry(("zz", 7)), spec=0).manifest(Entry((7,)), spec=1)
    found = integrity(builder)
    assert found.entries_outside == 0
    assert [(field.spec_id, field.source) for field in found.dropped_sources] == [(0, "q")]


def test_a_wrong_number_of_summaries_is_found() -> None:
    one = {"contains_null": False, "contains_nan": False, "lower_bound": b"\1\0\0\0", "upper_bound": b"\1\0\0\0"}
    builder = TableBuilder({"c": IntegerType()}, [[("c", "identity")]]).manifest(Entry((1,)), summaries=[one, one])
    assert [problem.width for problem in integrity(builder).summaries] == [[0]]


def test_a_manifest_of_another_length_than_listed_is_found() -> None:
    builder = TableBuilder({"c": IntegerType()}).manifest(Entry()).manifest(Entry(), file_size=5001)
    assert integrity(builder).wrong_lengths == [1]


def test_a_data_file_that_two_entries_name_is_counted_once_too_often() -> None:
    builder = TableBuilder({"c": IntegerType()}).manifest(Entry(path="a"), Entry(path="b"), Entry(path="c", status=2))
    assert integrity(builder.manifest(Entry(path="a"), Entry(path="c"))).duplicate_files == 1


def test_uuid_partitions_are_found_but_not_buckets_of_uuids() -> None:
    spec = [("u", "identity"), ("u", "bucket[4]")]
    builder = TableBuilder({"u": UUIDType()}, [spec]).manifest(Entry((None, None)))
    assert [field.name for field in integrity(builder).uuid_fields] == ["u_0"]


@given(st.lists(st.lists(st.one_of(st.none(), st.integers(-9, 9)), max_size=5), max_size=6))
def test_summaries_that_follow_from_the_entries_contradict_nothing(manifests: list[list[int | None]]) -> None:
    builder = TableBuilder({"d": DateType()}, [[("d", "day")]])
    for values in manifests:
        builder.manifest(*(Entry((value,)) for value in values))
    found = integrity(builder)
    assert (found.entries_outside, found.inverted_summaries, found.wrong_lengths) == (0, 0, [])
