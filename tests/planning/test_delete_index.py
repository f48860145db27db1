"""Which deletes apply to which files: the rules that ``test_scan`` does not show by the way."""

from __future__ import annotations

from typing import Any

import pytest
from pyiceberg.partitioning import PartitionSpec
from tests.planning.pictures import File, Manifest, picture, spec
from tests.planning.test_scan import DAYS, SCHEMA, attached, deletes, equality, position, vector

from planning_health.errors import NotMeasurableError
from planning_health.planning.scan import simulate_scan

ID, OPTIONAL = 1, 5  # a required and an optional column
RANGES = {"below": (1, 6), "touching": (1, 7), "within": (8, 8), "above": (10, 20)}


def counts(column: str, values: int, nulls: int, **more: Any) -> dict[str, Any]:
    return {"values": {column: values}, "nulls": {column: nulls}} | more


def ranged(column: str, lower: int, upper: int) -> dict[str, Any]:
    return {"lower": {column: lower}, "upper": {column: upper}}


@pytest.mark.parametrize(
    "scope",
    [
        {"referenced": "f"},
        {"lower": {"file_path": b"f"}, "upper": {"file_path": b"f"}},
    ],
    ids=["by the file it references", "by equal bounds"],
)
def test_deletes_of_one_path_apply_to_data_of_the_same_commit_or_older(scope: dict[str, Any]) -> None:
    for sequence, found in ((1, ["pos"]), (2, ["pos"]), (3, [])):
        data = [File("f", (1,), sequence=sequence), File("g", (1,), sequence=sequence)]
        assert attached(data, position("pos", (1,), 2, **scope)) == {"f": found, "g": []}


def test_deletes_of_one_path_must_be_in_its_partition() -> None:
    with pytest.raises(NotMeasurableError, match="pos and its data file f are in different partitions"):
        attached([File("f", (1,))], position("pos", (2,), 2, referenced="f"))


def test_position_deletes_whose_path_bounds_differ_apply_to_their_partition() -> None:
    paths = {"lower": {"file_path": b"a"}, "upper": {"file_path": b"g"}}
    assert attached([File("f", (1,)), File("z", (1,))], position("pos", (1,), 2, **paths)) == {
        "f": ["pos"],
        "z": ["pos"],
    }


def test_deletes_are_found_in_whatever_order_they_were_recorded() -> None:
    data = [File(f"s{sequence}", (1,), sequence=sequence) for sequence in (1, 4, 2)]
    found = attached(data, equality("e5", (1,), 5), equality("e2", (1,), 2), equality("e3", (1,), 3))
    assert found == {"s1": ["e2", "e3", "e5"], "s4": ["e5"], "s2": ["e3", "e5"]}


def test_a_delete_file_without_a_sequence_number_of_its_own_is_not_indexed() -> None:
    # sequence number 0 is that of version 1, which has no delete files
    assert attached([File("f", (1,), sequence=0)], position("pos", (1,), 0)) == {"f": []}


def test_equality_deletes_whose_range_lies_beside_the_files_do_not_apply() -> None:
    data = [File(name, (1,), **counts("i", 9, 0), **ranged("i", *bounds)) for name, bounds in RANGES.items()]
    found = attached(data, equality("eq", (1,), 5, equality_ids=[OPTIONAL], **counts("i", 3, 0), **ranged("i", 7, 9)))
    assert found == {"below": [], "touching": ["eq"], "within": ["eq"], "above": []}


@pytest.mark.parametrize("missing", ["data lower", "data upper", "delete lower", "delete upper"])
def test_one_unknown_bound_of_the_four_leaves_the_delete_applied(missing: str) -> None:
    for data_bounds, delete_bounds in (((1, 5), (7, 9)), ((17, 19), (7, 9))):
        data, delete = (counts("i", 9, 0) | ranged("i", *bounds) for bounds in (data_bounds, delete_bounds))
        side, bound = missing.split()
        (data if side == "data" else delete)[bound] = {}
        found = attached([File("f", (1,), **data)], equality("eq", (1,), 5, equality_ids=[OPTIONAL], **delete))
        assert found == {"f": ["eq"]}


@pytest.mark.parametrize(
    ("data", "delete", "applies"),
    [
        (counts("i", 9, 9), counts("i", 3, 0), False),  # all null, and no null is deleted
        (counts("i", 9, 9), counts("i", 3, 1), True),
        (counts("i", 9, 9), {}, True),  # a missing null count may mean nulls
        (counts("i", 9, 0), counts("i", 3, 3), False),  # only nulls are deleted, and there is none
        (counts("i", 9, 1), counts("i", 3, 3), True),
        ({}, counts("i", 3, 3), True),
        (counts("i", 9, 8), counts("i", 3, 0), True),  # one value without bounds
    ],
)
def test_null_counts_decide_whether_equality_deletes_apply(
    data: dict[str, Any], delete: dict[str, Any], applies: bool
) -> None:
    found = attached([File("f", (1,), **data)], equality("eq", (1,), 5, equality_ids=[OPTIONAL], **delete))
    assert found == {"f": ["eq"] if applies else []}


def test_null_counts_of_a_required_column_mean_nothing() -> None:
    apart = ranged("id", 1, 5), ranged("id", 7, 9)
    assert attached([File("f", (1,), **apart[0])], equality("eq", (1,), 5, **apart[1])) == {"f": []}
    for data, delete in ((9, 0), (0, 9)):
        found = attached([File("f", (1,), **counts("id", 9, data))], equality("eq", (1,), 5, **counts("id", 9, delete)))
        assert found == {"f": ["eq"]}


def test_every_equality_column_must_be_able_to_match() -> None:
    data = File("f", (1,), lower={"id": 1, "i": 1}, upper={"id": 5, "i": 5}, nulls={"i": 0})
    near, far = {"lower": {"id": 3, "i": 3}, "upper": {"id": 4, "i": 4}}, {"lower": {"id": 3, "i": 8}}
    for bounds, found in ((near, ["eq"]), (far | {"upper": {"id": 4, "i": 9}}, [])):
        assert attached([data], equality("eq", (1,), 5, equality_ids=[ID, OPTIONAL], nulls={"i": 0}, **bounds)) == {
            "f": found
        }


def test_an_unknown_equality_column_is_named() -> None:
    with pytest.raises(NotMeasurableError, match="equality delete eq uses unknown field 77"):
        attached([File("f", (1,))], equality("eq", (1,), 5, equality_ids=[77]))


def global_or_not(own: PartitionSpec, partition: tuple[Any, ...]) -> list[list[str]]:
    manifests = [
        Manifest([File("f", (1,))]),
        Manifest([equality("eq", partition, 5)], spec_id=1, content=1),
    ]
    return simulate_scan(picture(SCHEMA, [DAYS, own], manifests)).deletes()


def test_a_spec_of_void_fields_is_unpartitioned_and_its_equality_deletes_are_global() -> None:
    assert global_or_not(spec((2, "void"), spec_id=1), (None,)) == [["eq"]]
    assert global_or_not(spec((2, "void"), (3, "identity"), spec_id=1), (None, "a")) == [[]]


def test_partition_values_of_a_dropped_column_are_null_whatever_was_written() -> None:
    # column 99 is in no schema any more, so that Iceberg reads nulls: the two partitions are one
    dropped = spec((99, "identity"), (3, "identity"))
    found = attached([File("f", (b"\x01", "a"))], equality("eq", (b"\x02", "a"), 5), specs=dropped)
    assert found == {"f": ["eq"]}


def test_a_deletion_vector_of_its_files_own_commit_applies() -> None:
    assert attached([File("f", (1,), sequence=2)], vector("dv", "f", 2)) == {"f": ["dv"]}


def test_indexed_delete_files_are_counted_by_kind() -> None:
    files = [vector("dv", "f", 2), position("p1", (1,), 2), position("p2", (1,), 2), equality("eq", (1,), 2)]
    report = simulate_scan(picture(SCHEMA, [DAYS], [Manifest([File("f", (1,))]), deletes(*files)])).report
    assert (report.dvs, report.positional_delete_files, report.equality_delete_files) == (1, 2, 1)
    assert (report.indexed_delete_files, report.result_delete_files) == (4, 2)
    assert report.total_delete_file_size_in_bytes == 40 + 1000, "a deletion vector costs its content, not its file"
