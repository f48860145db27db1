"""Signals of hand-built tables: exact values, and "not measured" where there is nothing to measure."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyiceberg.types import DateType, IntegerType, PrimitiveType, StringType, TimestampType
from tests.health.builder import ADDED, DELETED, DELETES, Entry, TableBuilder

from planning_health.health.measures import Measures
from planning_health.health.signals import all_signals

EXISTING = 0


def signals(builder: TableBuilder, *filter_columns: str) -> dict[tuple[str, str], float | None]:
    return {
        (item.scope_key, item.signal): item.value
        for item in all_signals(Measures(builder.build(), filter_columns))
        if item.scope != "column"
    }


def table_of(builder: TableBuilder, *filter_columns: str) -> dict[str, float | None]:
    return {name: value for (key, name), value in signals(builder, *filter_columns).items() if key == ""}


def days() -> TableBuilder:
    return TableBuilder({"d": DateType()}, [[("d", "day")]])


@given(
    st.lists(st.lists(st.sampled_from([EXISTING, ADDED, DELETED]), max_size=8), min_size=1, max_size=5),
)
def test_deleted_ratio_is_the_worst_of_manifests_that_still_live(manifests: list[list[int]]) -> None:
    table = days()
    for statuses in manifests:
        table.manifest(*(Entry((1,), status=status) for status in statuses))
    ratios = [m.count(DELETED) / len(m) for m in manifests if m and m.count(DELETED) < len(m)]
    measured = table_of(table)
    assert measured["deleted_ratio"] == (max(ratios) if ratios else None)
    assert measured["zero_live_manifests"] == sum(m.count(DELETED) == len(m) for m in manifests)
    entries = [status for m in manifests for status in m]
    assert measured["deleted_entry_share"] == (entries.count(DELETED) / len(entries) if entries else None)


def test_an_empty_table_measures_nothing_but_counts() -> None:
    measured = table_of(days())
    assert {name for name, value in measured.items() if value == 0} >= {"manifests", "data_files", "delete_files"}
    for name in ("deleted_ratio", "mean_manifest_bytes", "metadata_to_data", "statistics_share", "file_size_skew"):
        assert measured[name] is None, name


def test_manifests_are_counted_by_spec_and_content() -> None:
    table = TableBuilder({"d": DateType()}, [[("d", "month")], [("d", "day")]])
    table.manifest(Entry((1,)), Entry((2,)), length=100).manifest(Entry((1,)), spec=1, length=300)
    table.manifest(Entry((1,), content=1), spec=1, content=DELETES, length=500)
    measured = signals(table)
    assert [measured["", name] for name in ("manifests", "data_manifests", "delete_manifests")] == [3, 2, 1]
    assert [measured["", f"{name}_manifest_bytes"] for name in ("mean", "largest")] == [300, 500]
    assert measured["", "entries_per_manifest"] == 4 / 3
    assert [measured["1", name] for name in ("data_manifests", "delete_manifests", "manifest_bytes")] == [1, 1, 800]
    assert measured["0", "delete_manifests"] == 0


@pytest.mark.parametrize(
    ("transform", "lower", "upper", "in_units", "in_days"),
    [
        ("year", 52, 54, 2, 730),
        ("month", 648, 650, 2, 60),
        ("day", 19_723, 19_726, 3, 3),
        ("hour", 0, 36, 36, 1.5),
    ],
)
def test_partition_range_is_in_the_transforms_unit_and_in_days(
    transform: str, lower: int, upper: int, in_units: int, in_days: float
) -> None:
    table = TableBuilder({"t": TimestampType()}, [[("t", transform)]]).manifest(Entry((lower,)), Entry((upper,)))
    measured = signals(table)
    assert measured["0.t_0", "partition_range"] == in_units
    assert measured["0.t_0", "partition_range_days"] == in_days


def test_other_transforms_have_no_partition_range() -> None:
    spec = [("n", "bucket[4]"), ("n", "identity"), ("n", "truncate[5]"), ("n", "void")]
    table = TableBuilder({"n": IntegerType()}, [spec]).manifest(Entry((1, 1, 0, None)), Entry((3, 9, 5, None)))
    assert not [name for _, name in signals(table) if name.startswith("partition_range")]


def test_a_manifest_of_null_partitions_alone_has_no_range() -> None:
    assert signals(days().manifest(Entry((None,))))["0.d_0", "partition_range_days"] is None


def test_delete_files_are_measured_against_live_data_files() -> None:
    table = days().manifest(Entry((1,)), Entry((2,)), Entry((3,), status=DELETED))
    table.manifest(
        Entry((1,), content=1, records=5, sequence=2),
        Entry((1,), content=2, records=6, sequence=2),
        Entry((3,), content=1, records=7, sequence=2),
        Entry((2,), content=1, records=9, status=DELETED),
        content=DELETES,
    )
    measured = table_of(table)
    assert (measured["delete_files"], measured["delete_rows"]) == (3, 18)
    assert (measured["delete_files_per_data_file"], measured["delete_rows_per_data_file"]) == (1.5, 9)
    assert measured["delete_files_per_partition"] == 2
    assert (measured["dangling_delete_files"], measured["dangling_delete_ratio"]) == (1, 1 / 3)


def test_statistics_bytes_are_summed_by_column_over_all_manifests() -> None:
    table = TableBuilder({"d": DateType(), "s": StringType(), "gone": StringType()}, [[]], dropped=["gone"])
    table.manifest(Entry(), Entry(), statistics_bytes=[{"field_id": 1, "bytes": 30}, {"field_id": 3, "bytes": 500}])
    table.manifest(Entry(content=1), content=DELETES, statistics_bytes=[{"field_id": 2147483546, "bytes": 70}])
    table.manifest(Entry(), statistics_bytes=[{"field_id": 1, "bytes": 60}])
    columns = Measures(table.build()).columns
    assert [(item.column, item.bytes, item.share) for item in columns.by_column] == [
        ("gone (dropped)", 500, 500 / 30_000),
        ("d", 90, 90 / 30_000),
        ("file_path (of delete files)", 70, 70 / 30_000),
    ]
    assert columns.bytes_per_file == 590 / 3
    assert columns.columns_without == ["s"]


def test_filter_columns_without_bounds_are_measured_from_the_files() -> None:
    table = TableBuilder({"a": IntegerType(), "b": IntegerType(), "c": IntegerType()}, recorded=["a", "b", "c"])
    some: dict[str, Any] = {"lower_bound.1": b"\0\0\0\0", "upper_bound.1": b"\0\0\0\0"}
    nulls: dict[str, Any] = {"value_count.2": 10, "null_value_count.2": 10}
    table.manifest(Entry(statistics=some | nulls), Entry(statistics=nulls), Entry(status=DELETED))
    measures = Measures(table.build(), ["A", "B", "c"])
    assert [(item.column, item.share) for item in measures.columns.filter_coverage] == [("a", 0.5), ("b", 1), ("c", 0)]
    assert table_of(table, "A", "B", "c")["filter_columns_without_bounds"] == 1
    assert table_of(table)["filter_columns_without_bounds"] is None, "without queries there is nothing to measure"


def test_a_filter_column_whose_value_is_the_partition_needs_no_bounds() -> None:
    columns: dict[str, PrimitiveType] = {"d": DateType(), "t": TimestampType(), "s": StringType()}
    specs = [[("d", "day"), ("t", "day"), ("s", "identity")], [("d", "month")]]
    table = TableBuilder(columns, specs, recorded=["d", "t", "s"])
    table.manifest(Entry((1, 1, "a"))).manifest(Entry((1,)), spec=1)
    coverage = Measures(table.build(), columns).columns.filter_coverage
    assert [(item.column, item.share) for item in coverage] == [("d", 0.5), ("t", 0), ("s", 0.5)]
    assert table_of(table, *columns)["filter_columns_without_bounds"] == 1


def test_small_files_are_counted_and_only_what_compaction_can_save_is_excess() -> None:
    table = TableBuilder({"d": DateType()}, [[("d", "day")]], properties={"write.target-file-size-bytes": "1000"})
    table.manifest(*(Entry((1,), size=100) for _ in range(8)), *(Entry((2,), size=1000) for _ in range(7)))
    table.manifest(*(Entry((3,), size=10) for _ in range(4)), Entry((1,), size=100, status=DELETED))
    measured = table_of(table)
    assert measured["small_file_share"] == 12 / 19
    assert measured["excess_file_share"] == 7 / 19
    assert measured["file_size_skew"] == 1000 * 19 / 7840


def test_metadata_is_weighed_against_data() -> None:
    assert table_of(days().manifest(Entry((1,), size=70_000)))["metadata_to_data"] == 0.1
