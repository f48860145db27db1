"""The diagnosis of hand-built tables: states, findings, the two lists and the six steps."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyiceberg.types import DateType, IntegerType, StringType
from tests.health.builder import DELETED, DELETES, Entry, TableBuilder

from planning_health.health.analysis import analyse
from planning_health.health.catalogue import SIGNALS
from planning_health.health.lists import MANIFESTS_SHOWN
from planning_health.health.thresholds import resolve_thresholds
from planning_health.settings.models import TableRule

DEFAULTS = resolve_thresholds(None)


def diagnose(builder: TableBuilder, **options: Any) -> dict[str, Any]:
    return analyse(builder.build(), DEFAULTS, **options)


def days(*manifests: Sequence[int | None], **options: Any) -> TableBuilder:
    builder = TableBuilder({"d": DateType()}, [[("d", "day")]], **options)
    for values in manifests:
        builder.manifest(*(Entry((value,)) for value in values))
    return builder


def found(result: dict[str, Any]) -> set[str]:
    return {finding["id"] for finding in result["findings"]}


def level(result: dict[str, Any], signal: str, scope_key: str = "") -> str:
    (match,) = [item for item in result["signals"] if (item["signal"], item["scope_key"]) == (signal, scope_key)]
    return str(match["level"])


def test_a_manifest_wider_than_the_threshold_and_its_fair_share_is_wide() -> None:
    result = diagnose(days([0, 80], [10, 85], [20, 90]))
    assert found(result) == {"wide_manifests:0.d_0"}
    (finding,) = result["findings"]
    assert (finding["value"], finding["threshold"], finding["level"]) == (80, 30, "warning")
    assert "m0.avro (80 days)" in finding["evidence"]
    assert result["state"] == level(result, "partition_range_days", "0.d_0") == "warning"


def test_one_clustered_manifest_is_listed_but_not_held_against_the_table() -> None:
    result = diagnose(days([0, 300]))
    assert [item["range_days"] for item in result["lists"]["by_partition_range"]] == [300]
    assert (result["state"], result["findings"]) == ("ok", [])
    assert level(result, "partition_range_days", "0.d_0") == "ok"


def test_manifests_that_share_a_long_range_evenly_are_not_wide() -> None:
    assert diagnose(days([0, 99], [100, 199], [200, 299]))["findings"] == []


def test_range_of_deleted_values_does_not_excuse_a_wide_manifest() -> None:
    builder = days([0, 80], [10, 85], [20, 90])
    builder.manifest(Entry((0,), status=DELETED), Entry((9000,), status=DELETED), Entry((1,)))
    assert "wide_manifests:0.d_0" in found(diagnose(builder))


def test_delete_manifests_and_empty_ones_are_in_no_raw_list() -> None:
    builder = days([0, 40]).manifest()
    builder.manifest(Entry((0,), content=1), Entry((90,), content=1), content=DELETES)
    lists = diagnose(builder)["lists"]
    assert [item["ordinal"] for item in lists["by_partition_range"]] == [0]
    assert lists["by_deleted_ratio"] == []


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 60), st.integers(1, 10)), min_size=1, max_size=12))
def test_the_raw_lists_hold_the_worst_five_of_what_reaches_the_thresholds(shapes: list[tuple[int, int, int]]) -> None:
    builder = days()
    for deleted, width, live in shapes:
        gone = (Entry((0,), status=DELETED) for _ in range(deleted))
        builder.manifest(*gone, *(Entry((width if i == 0 else 0,)) for i in range(live)), Entry((0,)))
    lists = diagnose(builder)["lists"]
    ratios = [deleted / (deleted + live + 1) for deleted, _, live in shapes]
    widths = [width for _, width, _ in shapes]
    assert [item["deleted_ratio"] for item in lists["by_deleted_ratio"]] == sorted(
        (ratio for ratio in ratios if ratio >= 0.3), reverse=True
    )[:5]
    assert [item["range_days"] for item in lists["by_partition_range"]] == sorted(
        (width for width in widths if width >= 30), reverse=True
    )[:5]
    assert set(lists["in_both"]) == {
        f"s3://lake/t/metadata/m{i}.avro" for i in range(len(shapes)) if ratios[i] >= 0.3 and widths[i] >= 30
    }


def test_a_manifest_of_deleted_entries_alone_is_zero_live_and_not_high_delete() -> None:
    builder = days([0, 1])
    for _ in range(10):
        builder.manifest(Entry((0,), status=DELETED))
    result = diagnose(builder)
    assert found(result) == {"zero_live_manifests"}
    assert result["lists"]["by_deleted_ratio"][0]["deleted_ratio"] == 1
    assert result["manifests"][1]["live_entries"] == 0


def test_a_finding_names_its_spec_by_its_fields_and_says_what_its_threshold_is_for() -> None:
    table = days()
    for first in range(25):
        table.manifest(Entry((first,)), Entry((100 + first,)))
    evidence = {finding["id"]: finding["evidence"] for finding in diagnose(table)["findings"]}
    titles = {finding["id"]: finding["title"] for finding in diagnose(table)["findings"]}
    assert titles["too_many_manifests:0"] == "25 data manifests for 50 files of spec 0 (days(d))"
    assert evidence["too_many_manifests:0"].endswith(
        "The threshold of 10 (critical: 50) is for specs with more than 20 data manifests and no clustered field."
    )
    assert (
        "The threshold of 30 days (critical: 90 days) is for manifests that are more than twice as wide"
        in (evidence["wide_manifests:0.d_0"])
    )


def test_a_finding_on_the_first_field_needs_no_sort_order_and_one_on_another_field_names_it() -> None:
    """What Spark does without ``sort_by``: it clusters by the partition fields in their order."""
    table = TableBuilder({"c": IntegerType(), "d": DateType()}, [[("c", "identity"), ("d", "day")]])
    for shift in range(12):
        table.manifest(*(Entry((country, country * 40 + shift)) for country in range(6)))
    recommended = {item["id"]: item["recommendation"] for item in diagnose(table)["findings"]}
    assert recommended["overlapping_manifests:0.c_0"] == (
        "Rewrite the manifests of spec 0 (c, days(d)): that clusters them by c_0."
    )
    assert recommended["wide_manifests:0.d_1"] == (
        "Rewrite the manifests of spec 0 (c, days(d)) sorted by d_1 if queries filter by it more than by c_0: without "
        "a sort order they are clustered by c_0."
    )


def test_the_finding_and_the_list_of_deleted_entries_tell_the_same_story() -> None:
    table = days([0, 1])
    table.manifest(*(Entry((number,), status=DELETED) for number in (1, 2)), Entry((3,)))
    table.manifest(Entry((4,), status=DELETED))
    (finding,) = diagnose(table)["findings"]
    assert finding["title"] == "1 manifest holds many DELETED entries"
    assert "m1.avro (67% of 3 entries)" in finding["evidence"]
    assert "1 other manifest has DELETED entries only (100%): scans pass it over." in finding["evidence"]


@pytest.mark.parametrize(("files", "expected"), [(150, "warning"), (1_100, "critical")])
def test_small_files_are_critical_only_where_many_can_be_saved(files: int, expected: str) -> None:
    table = TableBuilder({"d": DateType()}, [[("d", "day")]]).manifest(*(Entry((1,), size=100) for _ in range(files)))
    result = diagnose(table)
    (finding,) = [item for item in result["findings"] if item["id"] == "small_files"]
    assert (finding["level"], level(result, "excess_file_share"), result["state"]) == (expected,) * 3


def test_high_delete_covers_deleted_entries_and_delete_manifests() -> None:
    builder = days([0]).manifest(Entry((1,)), Entry((1,), status=DELETED))
    builder.manifest(Entry((0,), content=1, sequence=2), Entry((1,), content=1, sequence=2), content=DELETES)
    result = diagnose(builder)
    assert found(result) == {"high_deleted_ratio", "many_delete_files"}
    evidence = {finding["id"]: finding["evidence"] for finding in result["findings"]}
    assert "m1.avro (50% of 2 entries)" in evidence["high_deleted_ratio"]
    assert "m2.avro (2 delete files)" in evidence["many_delete_files"]
    assert result["state"] == "critical"


def test_dangling_deletes_are_told_with_the_procedure_that_removes_them() -> None:
    builder = days([0], [1]).manifest(Entry((7,), content=1, sequence=9), content=DELETES)
    findings = {finding["id"]: finding for finding in diagnose(builder)["findings"]}
    assert findings["dangling_deletes"]["value"] == 1
    assert "rewrite_manifests does not remove them" in findings["dangling_deletes"]["recommendation"]


def test_an_overlapping_field_is_found_unless_another_field_is_clustered() -> None:
    buckets = range(4)
    for spec, expected in (
        ([("n", "bucket[4]")], {"overlapping_manifests:0.n_0"}),
        ([("d", "day"), ("n", "bucket[4]")], set()),
    ):
        builder = TableBuilder({"d": DateType(), "n": IntegerType()}, [spec])
        for day in range(8):
            builder.manifest(*(Entry((day, b) if len(spec) == 2 else (b,)) for b in buckets))
        assert found(diagnose(builder)) == expected


def test_a_value_with_more_files_than_a_manifest_holds_is_not_called_overlapping() -> None:
    assert diagnose(days(*([[1, 1, 1]] * 12)))["findings"] == []


def test_many_manifests_are_no_finding_where_a_field_is_clustered() -> None:
    clustered = days(*[[day, day + 1] for day in range(0, 100, 2)])
    assert "too_many_manifests:0" not in found(diagnose(clustered))
    unpartitioned = TableBuilder({"d": DateType()}, properties={"commit.manifest-merge.enabled": "false"})
    for _ in range(50):
        unpartitioned.manifest(Entry())
    result = diagnose(unpartitioned)
    assert found(result) == {"too_many_manifests:0"}
    assert "switch merging on" in result["findings"][0]["recommendation"]


@pytest.mark.parametrize("signal", ["wrong_manifest_lengths", "entries_outside_summary", "duplicate_data_files"])
def test_contradictions_are_critical(signal: str) -> None:
    builder = days([1], [2])
    if signal == "wrong_manifest_lengths":
        builder.manifests[0]["file_size"] = 17
    elif signal == "entries_outside_summary":
        builder.manifests[0]["partitions"] = builder.manifests[1]["partitions"]
    else:
        builder.files[0][1]["file_path"] = builder.files[0][0]["file_path"]
    result = diagnose(builder)
    assert (result["state"], found(result)) == ("critical", {signal})


def test_specs_that_cannot_be_rewritten_are_named() -> None:
    builder = TableBuilder({"d": DateType(), "q": StringType()}, [[("q", "identity")]], dropped=["q"])
    result = diagnose(builder.manifest(Entry(("x",))))
    assert "q_0 from q in spec 0 (q)" in result["findings"][0]["evidence"]


def test_overrides_change_the_state() -> None:
    builder = days([1]).manifest(Entry((1,)), Entry((1,), status=DELETED))
    rule = TableRule.model_validate({"match": "*", "thresholds": {"deleted_ratio": {"warning": 0.6, "critical": 0.7}}})
    assert analyse(builder.build(), resolve_thresholds(rule))["state"] == "ok"
    assert diagnose(builder)["state"] == "warning"


def test_an_empty_table_is_ok_and_its_steps_are_not_measured() -> None:
    result = diagnose(days())
    assert (result["state"], result["manifests"], result["overlap"]) == ("ok", [], [])
    assert [step["level"] for step in result["steps"]] == ["not_measured"] * 5 + ["ok"]


def test_the_six_steps_read_the_planning_result_when_there_is_one() -> None:
    planning = {
        "predicates": [
            {
                "name": "last_week",
                "data_manifests": {"total": 40, "scanned": 30, "skipped": 10},
                "data_files": {"total": 500, "result": 100, "skipped": 400},
            }
        ]
    }
    steps = diagnose(days([0, 80], [10, 85], [20, 90]), planning=planning)["steps"]
    assert [step["step"] for step in steps] == [1, 2, 3, 4, 5, 6]
    assert steps[0]["level"] == "not_measured"
    assert "last_week skips 10 of 40 data manifests (25%, low)" in steps[1]["evidence"]
    assert steps[1]["level"] == "warning"
    assert "last_week skips 400 of 500 data files (80%)" in steps[2]["evidence"]


def test_a_bucket_is_told_apart_from_transforms_that_keep_order() -> None:
    builder = TableBuilder({"n": IntegerType()}, [[("n", "bucket[8]")]]).manifest(Entry((3,)))
    assert "only equality predicates can skip by a bucket" in diagnose(builder)["steps"][1]["evidence"]


def test_null_partitions_are_distinguishable_from_the_text_null() -> None:
    builder = TableBuilder({"s": StringType()}, [[("s", "identity")]])
    result = diagnose(builder.manifest(Entry((None,))).manifest(Entry(("null",))))
    nothing, text = (row["ranges"][0] for row in result["manifests"])
    assert (nothing["lower_display"], nothing["contains_null"]) == (None, True)
    assert (text["lower_display"], text["contains_null"]) == ("null", False)


def test_more_manifests_than_can_be_shown_keep_the_worst() -> None:
    builder = days(*([[5]] * MANIFESTS_SHOWN), [0, 70])
    rows = diagnose(builder)["manifests"]
    assert len(rows) == MANIFESTS_SHOWN
    assert rows[-1]["ordinal"] == MANIFESTS_SHOWN


def test_the_result_is_json_and_every_signal_is_in_the_glossary() -> None:
    builder = days([0, 80], [10, 85], [20, 90], recorded=["d"])
    builder.manifests[0]["statistics_bytes"] = [{"field_id": 1, "bytes": 12}]
    result = diagnose(builder, filter_columns=["d"])
    json.dumps(result, allow_nan=False)
    assert {item["signal"] for item in result["signals"]} <= SIGNALS.keys()
    assert {"scope", "scope_key", "signal", "value", "unit", "level"} == result["signals"][0].keys()


def test_properties_show_what_applies_and_whether_it_was_set() -> None:
    mode = "write.metadata.metrics.column.d"
    shown = {row["property"]: row for row in diagnose(days([1], properties={mode: "counts"}))["properties"]}
    assert shown[mode] == {"property": mode, "value": "counts", "set": True}
    assert shown["commit.manifest-merge.enabled"]["value"] is None, "on for Java writers, off for PyIceberg"
    assert not shown["commit.manifest-merge.enabled"]["set"]


@pytest.mark.parametrize(
    ("properties", "told", "advised"),
    [
        ({}, "not set: on for Spark and other Java writers, off for PyIceberg", "= true if PyIceberg writes it."),
        ({"commit.manifest-merge.enabled": "true"}, "is on (commit.manifest-merge.enabled = true).", "."),
        ({"commit.manifest-merge.enabled": "false"}, "is off (commit.manifest-merge.enabled = false).", "merging on."),
    ],
)
def test_merging_that_is_not_set_depends_on_who_writes(properties: dict[str, str], told: str, advised: str) -> None:
    """Iceberg's Java writers merge by default, PyIceberg does not: neither "on" nor "off" would be true."""
    builder = TableBuilder({"d": DateType()}, properties=properties)
    for _ in range(50):
        builder.manifest(Entry())
    result = diagnose(builder)
    assert f"Merging on commit {'is ' if not properties else ''}{told}" in result["findings"][0]["evidence"]
    assert result["findings"][0]["recommendation"].endswith(advised)
    assert told in result["steps"][4]["evidence"]
