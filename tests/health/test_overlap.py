"""Overlap depth and clustering ratio, against counting by hand."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyiceberg.types import DateType, DecimalType, DoubleType, IntegerType, LongType, StringType, TimestampType
from tests.health.builder import DELETED, Entry, TableBuilder, encoded, is_nan

from planning_health.health.overlap import SERIES_POINTS, OverlapDepth
from planning_health.health.picture import Picture

manifests_of_ints = st.lists(
    st.lists(st.one_of(st.none(), st.integers(-20, 20)), min_size=1, max_size=6), min_size=1, max_size=8
)


def depth_of(builder: TableBuilder) -> OverlapDepth:
    (spec,) = Picture(builder.build()).specs
    return spec.overlap[0]


def build(kind: Any, transform: str, manifests: list[list[Any]]) -> TableBuilder:
    builder = TableBuilder({"c": kind}, [[("c", transform)]])
    for values in manifests:
        builder.manifest(*(Entry((value,)) for value in values))
    return builder


def by_hand(manifests: list[list[Any]]) -> dict[Any, int]:
    """For each distinct value the manifests whose smallest and largest value it lies between."""
    numbers = [[v for v in values if v is not None] for values in manifests]
    distinct = {value for values in numbers for value in values}
    return {value: sum(bool(v) and min(v) <= value <= max(v) for v in numbers) for value in distinct}


@given(manifests_of_ints)
def test_depth_counts_the_manifests_whose_summary_contains_the_value(manifests: list[list[int | None]]) -> None:
    overlap = depth_of(build(IntegerType(), "identity", manifests))
    expected = by_hand(manifests)
    assert [overlap.key.decode(raw) for raw in overlap.raw] == sorted(expected)
    assert overlap.depths.tolist() == [expected[value] for value in sorted(expected)]


@given(manifests_of_ints)
def test_depth_lies_between_one_and_the_number_of_manifests(manifests: list[list[int | None]]) -> None:
    overlap = depth_of(build(IntegerType(), "bucket[64]", manifests))
    if overlap.values:
        assert 1 <= overlap.mean <= overlap.worst <= overlap.manifests == len(manifests)  # type: ignore[operator]
        assert 0 <= overlap.clustering_ratio <= 1  # type: ignore[operator]


@given(st.lists(st.lists(st.text(max_size=3), min_size=1, max_size=4), min_size=1, max_size=5))
def test_text_is_compared_by_its_utf8_bytes(manifests: list[list[str]]) -> None:
    manifests = [[value.encode("utf-8", "ignore").decode() for value in values] for values in manifests]
    ordered_summaries = [
        [{"contains_null": False, "contains_nan": False, "lower_bound": min(raw), "upper_bound": max(raw)}]
        for raw in ([value.encode() for value in values] for values in manifests)
    ]
    builder = TableBuilder({"c": StringType()}, [[("c", "identity")]])
    for values, summaries in zip(manifests, ordered_summaries, strict=True):
        builder.manifest(*(Entry((value,)) for value in values), summaries=summaries)
    expected = by_hand([[value.encode() for value in values] for values in manifests])
    assert depth_of(builder).depths.tolist() == [expected[value] for value in sorted(expected)]


def test_clustered_manifests_have_ratio_one_and_identical_ones_zero() -> None:
    assert depth_of(build(DateType(), "day", [[1, 2], [3, 4], [5]])).clustering_ratio == 1
    assert depth_of(build(DateType(), "day", [[1, 5], [1, 5], [1, 5]])).clustering_ratio == 0


def test_a_single_manifest_is_clustered() -> None:
    overlap = depth_of(build(DateType(), "day", [[1, 900]]))
    assert (overlap.mean, overlap.clustering_ratio) == (1, 1)


def test_a_field_of_nulls_alone_is_not_measured() -> None:
    overlap = depth_of(build(DateType(), "day", [[None], [None]]))
    assert (overlap.values, overlap.mean, overlap.p95, overlap.worst, overlap.clustering_ratio) == (0, *[None] * 4)


def test_values_of_deleted_entries_are_not_looked_up() -> None:
    builder = TableBuilder({"c": DateType()}, [[("c", "day")]])
    builder.manifest(Entry((1,)), Entry((9,), status=DELETED))
    assert depth_of(builder).values == 1


def test_nan_is_one_value_found_where_summaries_say_so_or_say_nothing() -> None:
    builder = build(DoubleType(), "identity", [[1.0, math.nan], [math.nan], [1.0]])
    builder.manifest(Entry((1.0,)), summaries=[silent_about_nan()])
    overlap = depth_of(builder)
    assert is_nan(overlap.key.decode(overlap.raw[-1]))
    assert overlap.depths.tolist() == [3, 3]
    assert overlap.as_json()["series"][-1] == {"value": None, "display": "NaN", "depth": 3}


def silent_about_nan() -> dict[str, Any]:
    one = encoded(1.0, DoubleType())
    return {"contains_null": False, "contains_nan": None, "lower_bound": one, "upper_bound": one}


def test_negative_zero_sorts_before_zero() -> None:
    overlap = depth_of(build(DoubleType(), "identity", [[0.0], [-0.0]]))
    assert overlap.depths.tolist() == [1, 1]


def test_a_manifest_without_summaries_is_always_opened() -> None:
    builder = build(IntegerType(), "identity", [[1], [2]])
    builder.manifest(Entry((1,)), summaries=None)
    assert depth_of(builder).depths.tolist() == [2, 2]


def test_an_undecodable_bound_excludes_nothing() -> None:
    builder = build(IntegerType(), "identity", [[1]])
    odd = {"contains_null": False, "contains_nan": False, "lower_bound": b"abc", "upper_bound": b"abc"}
    assert depth_of(builder.manifest(Entry((7,)), summaries=[odd])).depths.tolist() == [2, 1]


def test_a_promoted_column_has_one_value_in_both_encodings() -> None:
    builder = build(LongType(), "identity", [[5]])
    four = {"contains_null": False, "contains_nan": False, "lower_bound": b"\5\0\0\0", "upper_bound": b"\5\0\0\0"}
    builder.manifest(Entry((5,)), summaries=[four])
    builder.files[0][-1]["partition"] = [b"\5\0\0\0"]
    assert depth_of(builder).depths.tolist() == [2]


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        (
            DecimalType(38, 2),
            [Decimal("-10000000000000000000000000000.00"), Decimal("10000000000000000000000000000.00")],
        ),
        (DecimalType(9, 2), [Decimal("-0.05"), Decimal("0.05")]),
        (TimestampType(), [-1, 1]),
    ],
    ids=str,
)
def test_wide_and_short_decimals_and_timestamps_are_ordered_as_numbers(kind: Any, values: list[Any]) -> None:
    overlap = depth_of(build(kind, "identity", [[values[0]], values, [values[1]]]))
    assert [overlap.key.decode(raw) for raw in overlap.raw] == values
    assert overlap.depths.tolist() == [2, 2]


def test_a_long_series_keeps_its_peaks() -> None:
    manifests = [[value] for value in range(3 * SERIES_POINTS)] + [[777, 777], [777]]
    series = depth_of(build(IntegerType(), "identity", manifests)).as_json()["series"]
    assert len(series) == SERIES_POINTS
    assert {"value": 777, "display": "777", "depth": 3} in series


def test_each_spec_is_measured_by_its_own_fields() -> None:
    builder = TableBuilder({"d": DateType(), "n": IntegerType()}, [[("d", "month")], [("n", "identity"), ("d", "day")]])
    builder.manifest(Entry((600,)), Entry((601,)), spec=0)
    builder.manifest(Entry((600,)), spec=0)
    builder.manifest(Entry((4, 18_000)), spec=1)
    first, second = Picture(builder.build()).specs
    assert [(o.key.scope_key, o.mean) for o in (*first.overlap, *second.overlap)] == [
        ("0.d_0", 1.5),
        ("1.n_0", 1.0),
        ("1.d_1", 1.0),
    ]
