"""What-ifs: fewer statistics, another partition spec; a prediction is a picture that is planned like any other."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyiceberg.schema import Schema
from pyiceberg.types import DateType, LongType, NestedField, StringType, TimestampType
from tests.planning.pictures import File, Manifest, picture, spec

from planning_health.errors import InputError
from planning_health.metadata import PlanningMetadata
from planning_health.planning.fewer_statistics import truncate_bound, with_statistics
from planning_health.planning.report import plan_where
from planning_health.planning.respec import with_spec
from planning_health.planning.scan import ScanPlanner
from planning_health.planning.what_if import compare

SCHEMA = Schema(
    NestedField(1, "id", LongType()),
    NestedField(2, "d", DateType()),
    NestedField(3, "s", StringType()),
    NestedField(4, "ts", TimestampType()),
)


def file(number: int, **more: Any) -> File:
    values = {"id": 100, "d": 100, "s": 100}
    return File(
        f"f{number}",
        (19_000 + number,),
        lower={"id": 10 * number, "d": 19_000 + number, "s": f"key-{number:03d}"},
        upper={"id": 10 * number + 9, "d": 19_000 + number, "s": f"key-{number:03d}-z"},
        values=values,
        nulls=dict.fromkeys(values, 0),
        size=1_000_000,
        **more,
    )


@pytest.fixture
def days() -> PlanningMetadata:
    manifests = [Manifest([file(number) for number in range(start, start + 10)]) for start in (0, 10, 20)]
    metadata = picture(SCHEMA, [spec((2, "day"))], manifests)
    rows = metadata.manifests.to_pylist()
    for row in rows:
        row |= {"length": 20_000, "uncompressed_bytes": 40_000}
        row["statistics_bytes"] = [{"field_id": 1, "bytes": 4_000}, {"field_id": 3, "bytes": 12_000}]
    table = type(metadata.manifests).from_pylist(rows, schema=metadata.manifests.schema)
    return PlanningMetadata(metadata.info, table, metadata.data_files, metadata.delete_files)


def test_dropped_statistics_lose_file_pruning_and_save_bytes(days: PlanningMetadata) -> None:
    change = with_statistics(days, {"id": "none"})
    by_id, by_text = compare(days, change.metadata, ["id = 55", "s = 'key-007'"])
    assert (by_id.before.data_files, by_id.after.data_files) == (1, 30)
    assert by_id.loses_file_pruning
    assert not by_text.loses_file_pruning
    assert 0 < change.saved_bytes["id"] < 3 * 4_000
    assert by_id.after.metadata_bytes == by_id.before.metadata_bytes - change.saved_bytes["id"]


def test_counts_mode_keeps_null_pruning(days: PlanningMetadata) -> None:
    change = with_statistics(days, {"id": "counts"})
    equal, null = compare(days, change.metadata, ["id = 55", "id IS NULL"])
    assert equal.after.data_files == 30
    assert null.after.data_files == 0


def test_truncated_bounds_prune_by_what_is_left_of_them(days: PlanningMetadata) -> None:
    change = with_statistics(days, {"s": "truncate(6)", "id": "truncate(6)"})
    one, prefix = compare(days, change.metadata, ["s = 'key-015'", "id = 55"])
    assert (one.before.data_files, one.after.data_files) == (1, 10)
    assert prefix.after.data_files == 1, "numbers are never truncated"
    assert change.saved_bytes["id"] == 0


def test_full_changes_nothing(days: PlanningMetadata) -> None:
    change = with_statistics(days, {"s": "full"})
    assert change.metadata.data_files.equals(days.data_files)
    assert change.saved_bytes == {"s": 0}


@pytest.mark.parametrize("mode", ["truncate(0)", "all", ""])
def test_unknown_modes_are_input_errors(days: PlanningMetadata, mode: str) -> None:
    with pytest.raises(InputError, match="metrics mode"):
        with_statistics(days, {"s": mode})
    with pytest.raises(InputError, match="'nope'"):
        with_statistics(days, {"nope": "none"})


@given(st.text(), st.integers(1, 5))
def test_truncated_text_bounds_still_bound(text: str, length: int) -> None:
    raw = text.encode("utf-8", "surrogatepass") if not _has_surrogate(text) else b"a"
    lower, upper = truncate_bound(raw, length, upper=False), truncate_bound(raw, length, upper=True)
    assert lower is not None
    assert lower <= raw
    assert upper is None or raw <= upper


def _has_surrogate(text: str) -> bool:
    return any(0xD800 <= ord(letter) <= 0xDFFF for letter in text)


def test_an_upper_bound_that_cannot_be_rounded_up_is_dropped() -> None:
    assert truncate_bound("\U0010ffff\U0010ffffx".encode(), 2, upper=True) is None
    assert truncate_bound("a\ud7ffx".encode(), 2, upper=True) == "a\ue000".encode()
    assert truncate_bound(b"\xff\xff\x01", 2, upper=True) is None


def reads(metadata: PlanningMetadata, where: str) -> tuple[int, int]:
    report = plan_where(ScanPlanner(metadata), where).report
    return report.scanned_data_manifests, report.result_data_files


def test_days_become_months(days: PlanningMetadata) -> None:
    months = with_spec(days, [("d", "month")])
    assert len(months.data_files) == 2  # 2022-01 and 2022-02
    assert sum(months.data_files["file_size_in_bytes"].to_pylist()) == 30_000_000
    assert reads(months, "d = DATE '2022-01-20'") == (1, 1)


def test_a_wide_file_is_spread_over_its_days() -> None:
    wide = File("f", (), lower={"d": 19_000}, upper={"d": 19_009}, values={"d": 100}, nulls={"d": 0}, size=1000)
    by_day = with_spec(picture(SCHEMA, [spec()], [Manifest([wide])]), [("d", "day")])
    assert by_day.data_files["file_size_in_bytes"].to_pylist() == [100] * 10
    assert reads(by_day, f"d = DATE '{dt.date(1970, 1, 1) + dt.timedelta(19_004)}'") == (1, 1)


def test_buckets_take_an_equal_share_and_prune_equality_only(days: PlanningMetadata) -> None:
    buckets = with_spec(days, [("id", "bucket[4]")])
    assert len(buckets.data_files) == 4
    assert reads(buckets, "id = 55")[1] == 1
    assert reads(buckets, "id > 55")[1] == 4


def test_nulls_go_to_the_null_partition() -> None:
    half = File("f", (), lower={"d": 19_000}, upper={"d": 19_000}, values={"d": 100}, nulls={"d": 50}, size=1000)
    by_day = with_spec(picture(SCHEMA, [spec()], [Manifest([half])]), [("d", "day")])
    assert by_day.data_files["partition"].to_pylist() == [[None], [(19_000).to_bytes(4, "little")]]
    assert reads(by_day, "d IS NULL") == (1, 1)


def test_partitions_larger_than_the_target_get_several_files(days: PlanningMetadata) -> None:
    assert len(with_spec(days, [("d", "month")], target_file_bytes=10_000_000).data_files) == 4


def test_two_fields_make_the_product_of_their_partitions(days: PlanningMetadata) -> None:
    both = with_spec(days, [("d", "month"), ("id", "bucket[4]")])
    assert len(both.data_files) == 8
    assert reads(both, "d = DATE '2022-01-20' AND id = 55")[1] == 1


def test_identity_uses_the_values_that_are_known(days: PlanningMetadata) -> None:
    by_text = with_spec(days, [("s", "truncate[7]")])
    assert len(by_text.data_files) == 30
    assert reads(by_text, "s = 'key-015'")[1] == 1


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ([("nope", "day")], "unknown column 'nope'"),
        ([("d", "void")], "transform 'void'"),
        ([("d", "zorder")], "transform 'zorder'"),
        ([("s", "day")], "needs a date or timestamp"),
    ],
)
def test_specs_that_do_not_fit_are_input_errors(
    days: PlanningMetadata, fields: list[tuple[str, str]], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        with_spec(days, fields)


def test_a_column_that_was_not_recorded_cannot_be_partitioned_by(days: PlanningMetadata) -> None:
    metadata = picture(SCHEMA, [spec()], [Manifest([file(1)][:0])], recorded=frozenset({1}))
    with pytest.raises(InputError, match="'d' is not recorded"):
        with_spec(metadata, [("d", "day")])
