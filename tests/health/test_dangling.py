"""Which delete files apply to nothing any more, and which are not certain to."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyiceberg.types import IntegerType, LongType, StringType
from tests.health.builder import DELETED, DELETES, Entry, TableBuilder

from planning_health.health.dangling import dangling_deletes
from planning_health.health.picture import Picture

POSITION, EQUALITY = 1, 2


def dangling(builder: TableBuilder) -> list[bool]:
    return [bool(item) for item in dangling_deletes(Picture(builder.build()))]


def by_region() -> TableBuilder:
    return TableBuilder({"region": StringType()}, [[("region", "identity")]])


@pytest.mark.parametrize(
    ("content", "delete_sequence", "expected"),
    [(POSITION, 4, True), (POSITION, 5, False), (POSITION, 6, False), (EQUALITY, 5, True), (EQUALITY, 6, False)],
)
def test_position_deletes_reach_equal_sequences_and_equality_deletes_only_older_ones(
    content: int, delete_sequence: int, expected: bool
) -> None:
    table = by_region().manifest(Entry(("eu",), sequence=5), Entry(("us",), sequence=1))
    table.manifest(Entry(("eu",), sequence=delete_sequence, content=content), content=DELETES)
    assert dangling(table) == [expected]


def test_a_partition_without_live_data_leaves_its_deletes_dangling() -> None:
    table = by_region().manifest(Entry(("eu",), status=DELETED), Entry((None,)))
    table.manifest(
        Entry(("eu",), sequence=9, content=POSITION), Entry((None,), sequence=9, content=EQUALITY), content=DELETES
    )
    assert dangling(table) == [True, False]


def test_the_text_null_is_another_partition_than_null() -> None:
    table = by_region().manifest(Entry(("null",)))
    table.manifest(Entry((None,), sequence=9, content=POSITION), content=DELETES)
    assert dangling(table) == [True]


def test_only_equality_deletes_of_an_unpartitioned_spec_reach_other_specs() -> None:
    table = TableBuilder({"region": StringType()}, [[], [("region", "identity")], [("region", "void")]])
    table.manifest(Entry(("eu",)), spec=1)
    for spec, partition in ((0, ()), (2, (None,))):
        table.manifest(
            Entry(partition, sequence=2, content=EQUALITY),
            Entry(partition, sequence=2, content=POSITION),
            spec=spec,
            content=DELETES,
        )
    assert dangling(table) == [False, True, False, True]


def test_the_same_partition_value_in_another_spec_is_another_partition() -> None:
    table = TableBuilder({"region": StringType()}, [[("region", "identity")], [("region", "truncate[2]")]])
    table.manifest(Entry(("eu",)), spec=0)
    table.manifest(Entry(("eu",), sequence=9, content=EQUALITY), spec=1, content=DELETES)
    assert dangling(table) == [True]


@pytest.mark.parametrize(
    ("target", "delete_sequence", "expected"),
    [("live", 5, False), ("live", 4, True), ("removed", 9, True), ("unheard of", 9, True)],
)
@pytest.mark.parametrize("how", ["deletion vector", "file-scoped delete", "equal bounds"])
def test_a_delete_of_one_file_lives_and_dies_with_that_file(
    how: str, target: str, delete_sequence: int, expected: bool
) -> None:
    table = by_region().manifest(
        Entry(("eu",), path="live", sequence=5),
        Entry(("eu",), path="removed", sequence=1, status=DELETED),
        Entry(("eu",), path="older neighbour", sequence=1),
    )
    named: dict[str, Any] = {"path_bound": target} if how == "equal bounds" else {"referenced": target}
    kind: dict[str, Any] = {"file_format": "PUFFIN"} if how == "deletion vector" else {}
    table.manifest(Entry(("eu",), sequence=delete_sequence, content=POSITION, **named, **kind), content=DELETES)
    assert dangling(table) == [expected]


def test_doubtful_deletes_do_not_dangle() -> None:
    table = by_region().manifest(Entry(("eu",), sequence=None))
    table.manifest(
        Entry(("eu",), sequence=1, content=POSITION), Entry(("us",), sequence=None, content=POSITION), content=DELETES
    )
    assert dangling(table) == [False, False]


def test_removed_delete_files_are_not_counted() -> None:
    table = by_region().manifest(Entry(("eu",), status=DELETED))
    assert dangling(table.manifest(Entry(("eu",), status=DELETED, content=POSITION), content=DELETES)) == [False]


def test_a_promoted_partition_value_is_the_same_partition() -> None:
    table = TableBuilder({"n": LongType()}, [[("n", "identity")]]).manifest(Entry((7,)))
    table.files[0][0]["partition"] = [b"\7\0\0\0"]  # written while the column was an int
    assert dangling(table.manifest(Entry((7,), sequence=2, content=POSITION), content=DELETES)) == [False]


entries = st.tuples(st.sampled_from([None, 1, 2]), st.integers(1, 4), st.booleans())


@given(st.lists(entries, max_size=6), st.lists(st.tuples(entries, st.sampled_from([1, 2])), min_size=1, max_size=6))
def test_a_delete_that_reaches_some_live_file_never_dangles(data: list[Any], deletes: list[Any]) -> None:
    table = TableBuilder({"n": IntegerType()}, [[("n", "identity")]])
    table.manifest(*(Entry((p,), sequence=s, status=1 if live else DELETED) for p, s, live in data))
    table.manifest(
        *(Entry((p,), sequence=s, status=1 if live else DELETED, content=c) for (p, s, live), c in deletes),
        content=DELETES,
    )
    expected = [
        live and not any(alive and q == p and (t <= s if c == POSITION else t < s) for q, t, alive in data)
        for (p, s, live), c in deletes
    ]
    assert dangling(table) == expected
