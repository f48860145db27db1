"""Counters, manifest pruning and delete matching of simulated scans."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.schema import Schema
from pyiceberg.types import DateType, IntegerType, LongType, NestedField, StringType, TimestampType
from tests.planning.pictures import File, Manifest, picture, spec

from planning_health.errors import InputError, NotMeasurableError
from planning_health.planning.expressions import ALWAYS_TRUE, Operation, and_, or_, predicate
from planning_health.planning.scan import ScanPlanner, simulate_scan
from planning_health.planning.splits import MIB

SCHEMA = Schema(
    NestedField(1, "id", LongType(), required=True),
    NestedField(2, "d", DateType()),
    NestedField(3, "s", StringType()),
    NestedField(4, "ts", TimestampType()),
    NestedField(5, "i", IntegerType()),
)
DAYS = spec((2, "day"))
AUGUST_1 = 19936  # 2024-08-01; 19932 is 2024-07-28


def days(*values: int, **more: Any) -> list[File]:
    return [File(f"d{value}", (value,), **more) for value in values]


def test_day_values_count_from_the_epoch() -> None:
    metadata = picture(SCHEMA, [DAYS], [Manifest(days(AUGUST_1)), Manifest(days(19932))])
    assert simulate_scan(metadata, predicate(Operation.EQ, "d", "2024-08-01")).paths() == ["d19936"]


def test_skipped_files_are_counted_in_scanned_manifests_only() -> None:
    metadata = picture(SCHEMA, [DAYS], [Manifest(days(1, 2, 3)), Manifest(days(10, 11))])
    report = simulate_scan(metadata, predicate(Operation.EQ, "d", "1970-01-02")).report
    assert (report.result_data_files, report.skipped_data_files) == (1, 2)
    assert (report.total_data_manifests, report.scanned_data_manifests, report.skipped_data_manifests) == (2, 1, 1)


def test_a_manifest_without_a_live_entry_is_skipped_even_without_a_filter() -> None:
    metadata = picture(SCHEMA, [DAYS], [Manifest(days(1, status=2)), Manifest(days(2))])
    scan = simulate_scan(metadata)
    assert (scan.report.scanned_data_manifests, scan.report.skipped_data_manifests) == (1, 1)
    assert (scan.paths(), scan.data_rows.tolist()) == (["d2"], [1])


def test_a_file_without_records_is_left_out_by_a_filter_alone() -> None:
    # without one Iceberg evaluates nothing
    metadata = picture(SCHEMA, [DAYS], [Manifest([*days(1), File("empty", (1,), records=0)])])
    assert simulate_scan(metadata).paths() == ["d1", "empty"]
    assert simulate_scan(metadata, predicate(Operation.NOT_NULL, "i")).paths() == ["d1"]


def test_manifests_of_an_unknown_spec_are_not_measurable() -> None:
    metadata = picture(SCHEMA, [DAYS], [Manifest(days(1))])
    specs = pa.array([7], pa.int32())
    position = metadata.manifests.column_names.index("partition_spec_id")
    broken = replace(metadata, manifests=metadata.manifests.set_column(position, "partition_spec_id", specs))
    with pytest.raises(NotMeasurableError, match=r"partition specs \[7\], unknown"):
        ScanPlanner(broken)


def test_each_manifest_and_file_is_judged_by_both_sides_of_and_and_or() -> None:
    metadata = picture(SCHEMA, [DAYS], [Manifest(days(1, 2, 3)), Manifest(days(2)), Manifest(days(3))])
    from_2, to_2 = predicate(Operation.GT_EQ, "d", "1970-01-03"), predicate(Operation.LT_EQ, "d", "1970-01-03")
    for both in (and_(from_2, to_2), and_(to_2, from_2)):
        scan = simulate_scan(metadata, both)
        assert (scan.scanned_manifests.tolist(), scan.paths()) == ([0, 1], ["d2", "d2"])
    is_1, is_3 = predicate(Operation.EQ, "d", "1970-01-02"), predicate(Operation.EQ, "d", "1970-01-04")
    for either in (or_(is_1, is_3), or_(is_3, is_1)):
        scan = simulate_scan(metadata, either)
        assert (scan.scanned_manifests.tolist(), scan.paths()) == ([0, 2], ["d1", "d3", "d3"])


def test_a_manifest_of_existing_entries_alone_is_read() -> None:
    assert simulate_scan(picture(SCHEMA, [DAYS], [Manifest(days(1, status=0))])).paths() == ["d1"]


def test_deleted_entries_are_neither_read_nor_counted() -> None:
    files = [*days(1), File("gone", (1,), status=2)]
    removed = position("removed", (1,), 5, status=2)
    beside = Manifest(days(9, status=2))
    metadata = picture(SCHEMA, [DAYS], [Manifest(files), deletes(removed, position("pos", (1,), 5)), beside])
    for filter_ in (ALWAYS_TRUE, predicate(Operation.EQ, "d", "1970-01-02")):
        scan = simulate_scan(metadata, filter_)
        assert (scan.paths(), scan.deletes()) == (["d1"], [["pos"]])
        assert (scan.report.skipped_data_files, scan.report.skipped_delete_files) == (0, 0)
        assert (scan.report.indexed_delete_files, scan.live_data_files) == (1, 1)


def test_the_metrics_of_files_in_the_middle_are_those_files_own() -> None:
    middle = [
        File("low", (2,), lower={"i": 1}, upper={"i": 5}, values={"i": 9}, nulls={"i": 0}),
        File("high", (2,), lower={"i": 6}, upper={"i": 9}, values={"i": 9}, nulls={"i": 1}),
    ]
    manifests = [Manifest(days(1, 1, 1)), Manifest(middle), Manifest(days(3))]
    planner = ScanPlanner(picture(SCHEMA, [DAYS], manifests))
    day = predicate(Operation.EQ, "d", "1970-01-03")
    for op, values, found in (
        (Operation.EQ, (3,), ["low"]),
        (Operation.EQ, (7,), ["high"]),
        (Operation.LT, (6,), ["low"]),
        (Operation.GT, (5,), ["high"]),
        (Operation.IS_NULL, (), ["high"]),
    ):
        scan = planner.plan(and_(day, predicate(op, "i", *values)))
        assert (scan.paths(), scan.report.skipped_data_files) == (found, 1)


def test_entries_of_a_manifest_between_two_scanned_ones_are_not_counted() -> None:
    metadata = picture(SCHEMA, [DAYS], [Manifest(days(1, 2)), Manifest(days(8, 9)), Manifest(days(1))])
    scan = simulate_scan(metadata, predicate(Operation.EQ, "d", "1970-01-02"))
    assert scan.paths() == ["d1", "d1"]
    assert scan.scanned_manifests.tolist() == [0, 2]
    assert scan.report.skipped_data_files == 1
    assert (scan.report.scanned_data_manifests, scan.report.skipped_data_manifests) == (2, 1)
    kinds = (scan.report.dvs, scan.report.positional_delete_files, scan.report.equality_delete_files)
    assert (scan.report.indexed_delete_files, *kinds) == (0, 0, 0, 0)


def test_entries_that_do_not_lie_in_the_order_of_their_manifests_are_found() -> None:
    metadata = picture(SCHEMA, [DAYS], [Manifest(days(1, 2)), Manifest(days(8, 9)), Manifest(days(1))])
    turned = replace(metadata, data_files=metadata.data_files.take([4, 3, 2, 1, 0]))
    scan = simulate_scan(turned, predicate(Operation.EQ, "d", "1970-01-02"))
    assert (scan.data_rows.tolist(), scan.report.skipped_data_files) == ([0, 4], 1)
    mixed = replace(metadata, data_files=metadata.data_files.take([2, 3, 4, 0, 1]))
    scan = simulate_scan(mixed, predicate(Operation.EQ, "d", "1970-01-03"))
    assert (scan.data_rows.tolist(), scan.report.skipped_data_files) == ([4], 1)


def test_a_manifest_without_file_counts_is_read() -> None:
    metadata = picture(SCHEMA, [DAYS], [Manifest(days(1), added=None)])
    assert simulate_scan(metadata).report.scanned_data_manifests == 1


def test_absent_summaries_might_match_but_null_bounds_do_not() -> None:
    null_bounds = [{"contains_null": False, "contains_nan": False, "lower_bound": None, "upper_bound": None}]
    metadata = picture(SCHEMA, [DAYS], [Manifest(days(1), summaries=None), Manifest(days(1), summaries=null_bounds)])
    for op in (Operation.EQ, Operation.LT, Operation.GT):
        assert simulate_scan(metadata, predicate(op, "d", "1970-01-02")).report.scanned_data_manifests == 1


def test_an_inverted_summary_prunes_as_iceberg_does() -> None:
    # https://github.com/ClickHouse/ClickHouse/issues/119171: the health check flags it, Iceberg's readers prune
    inverted = [
        {"contains_null": False, "contains_nan": False, "lower_bound": b"\x09\0\0\0", "upper_bound": b"\x01\0\0\0"}
    ]
    metadata = picture(SCHEMA, [DAYS], [Manifest(days(5), summaries=inverted)])
    assert simulate_scan(metadata, predicate(Operation.EQ, "d", "1970-01-06")).report.scanned_data_manifests == 0


def test_summaries_belong_to_the_manifests_own_spec() -> None:
    # https://github.com/apache/iceberg-go/issues/1190: closing the gap of a dropped i would compare s with it
    evolved = [spec((5, "identity"), (3, "identity")), spec((3, "identity"), spec_id=1)]
    manifests = [Manifest([File("old", (7, "x"))]), Manifest([File("new", ("y",))], spec_id=1)]
    metadata = picture(SCHEMA, evolved, manifests)
    assert simulate_scan(metadata, predicate(Operation.EQ, "s", "x")).paths() == ["old"]
    assert simulate_scan(metadata, predicate(Operation.EQ, "s", "y")).paths() == ["new"]
    assert simulate_scan(metadata, predicate(Operation.EQ, "i", 7)).paths() == ["old", "new"]


def test_each_manifest_is_judged_by_the_projection_onto_its_own_spec() -> None:
    evolved = [spec((5, "identity")), spec((5, "bucket[16]"), spec_id=1)]  # 34 is in bucket 3
    manifests = [
        Manifest([File("i=34", (34,))]),
        Manifest([File("i=3", (3,))]),
        Manifest([File("bucket 3", (3,))], spec_id=1),
        Manifest([File("bucket 4", (4,))], spec_id=1),
    ]
    scan = simulate_scan(picture(SCHEMA, evolved, manifests), predicate(Operation.EQ, "i", 34))
    assert (scan.paths(), scan.scanned_manifests.tolist()) == (["i=34", "bucket 3"], [0, 2])


def test_a_spec_whose_source_was_dropped_prunes_by_its_other_fields() -> None:
    # https://github.com/apache/iceberg/issues/10234
    dropped = spec((99, "identity"), (3, "identity"))  # column 99 is in no schema
    summaries = [
        {"contains_null": True, "contains_nan": None, "lower_bound": None, "upper_bound": None},
        {"contains_null": False, "contains_nan": None, "lower_bound": b"a", "upper_bound": b"b"},
    ]
    files = [File("a", (None, "a")), File("b", (None, "b"))]
    metadata = picture(SCHEMA, [dropped], [Manifest(files, summaries=summaries)])
    assert simulate_scan(metadata, predicate(Operation.EQ, "s", "a")).paths() == ["a"]


def test_void_and_unknown_transforms_never_prune() -> None:
    for transform in ("void", "zorder"):
        metadata = picture(SCHEMA, [spec((3, transform))], [Manifest([File("f", (None,))])])
        assert simulate_scan(metadata, predicate(Operation.EQ, "s", "x")).paths() == ["f"]


def test_not_starts_with_longer_than_the_truncate_width_is_not_projected() -> None:
    metadata = picture(SCHEMA, [spec((3, "truncate[2]"))], [Manifest([File("f", ("ab",))])])
    assert simulate_scan(metadata, predicate(Operation.NOT_STARTS_WITH, "s", "abc")).report.scanned_data_manifests == 1
    assert simulate_scan(metadata, predicate(Operation.NOT_STARTS_WITH, "s", "ab")).report.scanned_data_manifests == 0


def test_a_null_partition_passes_less_than_until_the_metrics_say_all_null() -> None:
    summaries = [{"contains_null": True, "contains_nan": None, "lower_bound": b"\0\0\0\0", "upper_bound": b"\0\0\0\0"}]
    unknown = File("unknown", (None,))
    all_null = File("all null", (None,), values={"d": 5}, nulls={"d": 5})
    metadata = picture(SCHEMA, [DAYS], [Manifest([unknown, all_null], summaries=summaries)])
    assert simulate_scan(metadata, predicate(Operation.LT, "d", "1970-01-03")).paths() == ["unknown"]
    assert simulate_scan(metadata, predicate(Operation.GT, "d", "1969-01-03")).paths() == []


def test_an_unknown_column_is_an_input_error_that_names_it() -> None:
    metadata = picture(SCHEMA, [DAYS], [Manifest(days(1))])
    with pytest.raises(InputError, match="'nope'"):
        simulate_scan(metadata, predicate(Operation.EQ, "nope", 1))
    with pytest.raises(InputError, match="'D'"):
        simulate_scan(metadata, predicate(Operation.IS_NULL, "D"))
    assert simulate_scan(metadata, predicate(Operation.IS_NULL, "D"), case_sensitive=False).paths() == []


def test_is_null_on_a_required_column_is_false() -> None:
    metadata = picture(SCHEMA, [DAYS], [Manifest(days(1))])
    assert simulate_scan(metadata, predicate(Operation.IS_NULL, "id")).report.scanned_data_manifests == 0


def test_an_empty_table_reads_nothing() -> None:
    metadata = picture(SCHEMA, [DAYS], [])
    for expr in (ALWAYS_TRUE, predicate(Operation.EQ, "d", "1970-01-02")):
        scan = simulate_scan(metadata, expr)
        assert scan.report.total_data_manifests == scan.report.result_data_files == 0
        assert len(scan.combined_tasks()) == 0


def deletes(*files: File) -> Manifest:
    return Manifest(files, content=1)


def position(path: str, partition: tuple[Any, ...], sequence: int, **more: Any) -> File:
    return File(path, partition, sequence=sequence, content=1, **more)


def equality(path: str, partition: tuple[Any, ...], sequence: int, **more: Any) -> File:
    return File(path, partition, sequence=sequence, content=2, **{"equality_ids": [1]} | more)


def vector(path: str, referenced: str, sequence: int, partition: tuple[Any, ...] = (1,)) -> File:
    return position(path, partition, sequence, format="PUFFIN", referenced=referenced, content_size=40)


def attached(data: list[File], *files: File, specs: Any = DAYS) -> dict[str, list[str]]:
    scan = simulate_scan(picture(SCHEMA, [specs], [Manifest(data), deletes(*files)]))
    return {path: sorted(found) for path, found in zip(scan.paths(), scan.deletes(), strict=True)}


def test_equality_deletes_apply_to_strictly_older_data_and_position_deletes_to_the_same_commit() -> None:
    data = [File(f"s{sequence}", (1,), sequence=sequence) for sequence in (1, 2, 3)]
    found = attached(data, equality("eq", (1,), 2), position("pos", (1,), 2))
    assert found == {"s1": ["eq", "pos"], "s2": ["pos"], "s3": []}


def test_deletes_stay_in_their_partition_and_spec() -> None:
    found = attached([File("p1", (1,)), File("p2", (2,))], equality("eq", (1,), 5), position("pos", (2,), 5))
    assert found == {"p1": ["eq"], "p2": ["pos"]}
    two = [spec((2, "day")), spec((2, "day"), spec_id=1)]
    manifests = [
        Manifest([File("old", (1,))]),
        Manifest([File("new", (1,))], spec_id=1),
        Manifest([equality("eq", (1,), 5)], spec_id=1, content=1),
    ]
    scan = simulate_scan(picture(SCHEMA, two, manifests))
    assert dict(zip(scan.paths(), scan.deletes(), strict=True)) == {"old": [], "new": ["eq"]}


def test_only_equality_deletes_of_an_unpartitioned_spec_are_global() -> None:
    specs = [DAYS, spec(spec_id=1)]
    manifests = [
        Manifest([File("f", (1,))]),
        Manifest([equality("eq", (), 5), position("pos", (), 5)], spec_id=1, content=1),
    ]
    scan = simulate_scan(picture(SCHEMA, specs, manifests))
    assert scan.deletes() == [["eq"]]


def test_a_deletion_vector_replaces_position_deletes_but_not_equality_deletes() -> None:
    found = attached(
        [File("f", (1,)), File("g", (1,))], vector("dv", "f", 2), position("pos", (1,), 2), equality("eq", (1,), 2)
    )
    assert found == {"f": ["dv", "eq"], "g": ["eq", "pos"]}


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ([vector("a", "f", 2), vector("b", "f", 2)], "two deletion vectors"),
        ([vector("a", "f", 0 + 1)], "older"),
        ([vector("a", "f", 5, partition=(2,))], "different partitions"),
    ],
)
def test_corrupt_deletion_vectors_are_errors(files: list[File], message: str) -> None:
    with pytest.raises(NotMeasurableError, match=message):
        attached([File("f", (1,), sequence=2)], *files)


def test_position_deletes_with_equal_path_bounds_apply_to_that_path_only() -> None:
    path = {"file_path": b"f"}
    found = attached([File("f", (1,)), File("g", (1,))], position("pos", (1,), 2, lower=path, upper=path))
    assert found == {"f": ["pos"], "g": []}


def test_equality_deletes_are_pruned_by_bounds_and_null_counts() -> None:
    data = [
        File("low", (1,), lower={"i": 1}, upper={"i": 5}, nulls={"i": 0}, values={"i": 9}),
        File("nulls", (1,), lower={"i": 1}, upper={"i": 5}, nulls={"i": 2}, values={"i": 9}),
        File("unknown", (1,)),
    ]
    bounds = {"equality_ids": [5], "lower": {"i": 7}, "upper": {"i": 9}, "values": {"i": 3}}
    high = equality("eq", (1,), 5, nulls={"i": 0}, **bounds)
    assert attached(data, high) == {"low": [], "nulls": [], "unknown": ["eq"]}
    with_null = equality(
        "eq", (1,), 5, equality_ids=[5], lower={"i": 7}, upper={"i": 9}, nulls={"i": 1}, values={"i": 3}
    )
    assert attached(data, with_null) == {"low": [], "nulls": ["eq"], "unknown": ["eq"]}


def test_delete_files_are_pruned_by_the_filter_and_counted() -> None:
    manifests = [
        Manifest(days(1, 2)),
        deletes(position("p1", (1,), 2), position("p2", (2,), 2)),
        deletes(position("p9", (9,), 2)),
        deletes(position("p8", (8,), 2)),
    ]
    report = simulate_scan(picture(SCHEMA, [DAYS], manifests), predicate(Operation.EQ, "d", "1970-01-02")).report
    assert (report.scanned_delete_manifests, report.skipped_delete_manifests) == (1, 2)
    assert (report.indexed_delete_files, report.skipped_delete_files, report.positional_delete_files) == (1, 1, 1)
    assert report.result_delete_files == 1


def test_one_planner_finds_the_deletes_of_each_filter() -> None:
    metadata = picture(
        SCHEMA, [DAYS], [Manifest(days(1, 2)), deletes(position("p1", (1,), 2), position("p2", (2,), 2))]
    )
    planner = ScanPlanner(metadata)
    for day, found in (("1970-01-02", ["p1"]), ("1970-01-03", ["p2"]), ("1970-01-02", ["p1"])):
        assert planner.plan(predicate(Operation.EQ, "d", day)).deletes() == [found]


def test_equality_columns_that_the_scans_schema_lacks_are_those_of_another_schema() -> None:
    delete = equality("eq", (1,), 2, equality_ids=[5], lower={"i": 7}, upper={"i": 9}, nulls={"i": 0}, values={"i": 3})
    files = [File(f"i={low}", (1,), lower={"i": low}, upper={"i": low + 1}, nulls={"i": 0}) for low in (1, 8)]
    metadata = picture(SCHEMA, [DAYS], [Manifest(files), deletes(delete)])
    without_i = Schema(*SCHEMA.fields[:4], schema_id=1)
    assert simulate_scan(replace(metadata, info=replace(metadata.info, schema=without_i))).deletes() == [[], ["eq"]]


def test_live_partition_values_are_those_of_live_files_of_the_spec() -> None:
    manifests = [Manifest([*days(1, 2, 2), File("gone", (3,), status=2)]), Manifest(days(4), spec_id=1)]
    planner = ScanPlanner(picture(SCHEMA, [DAYS, spec((2, "day"), spec_id=1)], manifests))
    assert planner.live_partition_values(0, 0) == [b"\x01\0\0\0", b"\x02\0\0\0"]
    assert planner.live_partition_values(1, 0) == [b"\x04\0\0\0"]
    assert planner.live_partition_values(7, 0) == []


def test_delete_files_are_pruned_by_their_own_partitions() -> None:
    manifests = [Manifest(days(1, 2, 3)), deletes(*(position(f"p{day}", (day,), 2) for day in (3, 9, 1)))]
    scan = simulate_scan(picture(SCHEMA, [DAYS], manifests), predicate(Operation.EQ, "d", "1970-01-02"))
    assert (scan.deletes(), scan.report.skipped_delete_files) == ([["p1"]], 2)


def test_residuals_keep_only_what_the_partition_does_not_decide() -> None:
    hours = spec((4, "hour"), (3, "identity"))
    files = [File("whole", (10, "a")), File("edge", (11, "a")), File("other", (10, None))]
    metadata = picture(SCHEMA, [hours], [Manifest(files)])
    in_hours = predicate(Operation.LT, "ts", "1970-01-01T11:30:00")
    expr = or_(in_hours, predicate(Operation.EQ, "s", "b"))
    scan = ScanPlanner(metadata).plan(expr)
    residuals = dict(zip(scan.paths(), map(str, scan.residuals()), strict=True))
    assert residuals["whole"] == "true"
    assert residuals["edge"].startswith("ts <")


@pytest.mark.parametrize(
    ("files", "tasks"),
    [
        ([], [2]),  # 120 MiB of 128
        ([position("pos", (1,), 2, size=10 * MIB)], [1, 1]),  # 70 MiB each
        ([replace(vector("dv", path, 2), size=10 * MIB) for path in ("f0", "f1")], [2]),  # 40 bytes of each are read
        ([position(f"pos{number}", (1,), 2) for number in range(16)], [1, 1]),  # 17 × 4 MiB each, to open them all
    ],
    ids=["none", "their bytes", "the content of vectors", "the cost of opening"],
)
def test_deletes_weigh_on_combined_tasks(files: list[File], tasks: list[int]) -> None:
    data = [File(path, (1,), size=60 * MIB) for path in ("f0", "f1")]
    combined = simulate_scan(picture(SCHEMA, [DAYS], [Manifest(data), deletes(*files)])).combined_tasks()
    assert [len(task) for task in combined] == tasks


def test_deletes_weigh_on_their_own_file_alone() -> None:
    data = [File(path, (1,), size=60 * MIB) for path in ("f0", "f1", "f2")]
    own = position("pos", (1,), 2, size=30 * MIB, referenced="f1")
    tasks = simulate_scan(picture(SCHEMA, [DAYS], [Manifest(data), deletes(own)])).combined_tasks()
    assert [[piece.file for piece in task] for task in tasks] == [[0, 2], [1]]


def test_deletes_weigh_on_every_split_of_their_file() -> None:
    data = [File("f", (1,), size=300 * MIB)]  # 128, 128 and 44 MiB
    small = File("small", (2,), size=80 * MIB)
    for size, expected in ((1, [[128], [128], [44, 80]]), (10 * MIB, [[128], [128], [44], [80]])):
        manifests = [Manifest([*data, small]), deletes(position("pos", (1,), 2, size=size))]
        tasks = simulate_scan(picture(SCHEMA, [DAYS], manifests)).combined_tasks()
        assert [[piece.length // MIB for piece in task] for task in tasks] == expected
