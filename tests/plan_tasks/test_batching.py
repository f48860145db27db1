"""Batches of one plan, and the total order that makes them repeatable."""

from __future__ import annotations

import random
from typing import NamedTuple

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planning_health.errors import InputError
from planning_health.plan_tasks import BATCH_SIZE, TaskTable, batch, total_order


@pytest.mark.parametrize(
    ("tasks", "batch_size", "inline", "tokens", "requests", "last"),
    [
        (0, 100, 0, 0, 1, 0),
        (80, 100, 80, 0, 1, 80),
        (101, 100, 100, 1, 2, 1),
        (1050, 100, 100, 10, 11, 50),
        (100_000, 100, 100, 999, 1000, 100),
        (3, 0, 3, 0, 1, 3),
    ],
)
def test_batching(tasks: int, batch_size: int, inline: int, tokens: int, requests: int, last: int) -> None:
    cut = batch(tasks, batch_size)
    assert (cut.inline, cut.tokens, cut.requests, cut.last_batch) == (inline, tokens, requests, last)


def test_the_default_batch_has_100_tasks() -> None:
    assert BATCH_SIZE == 100
    assert batch(101).tokens == 1


@pytest.mark.parametrize(("tasks", "batch_size"), [(-1, 100), (1, -1)])
def test_negative_numbers_are_configuration_errors(tasks: int, batch_size: int) -> None:
    with pytest.raises(InputError, match="-1: expected at least 0"):
        batch(tasks, batch_size)


@given(st.integers(0, 2000), st.integers(0, 150))
def test_inline_batch_and_tokens_cover_every_task_once(tasks: int, batch_size: int) -> None:
    cut = batch(tasks, batch_size)
    covered = list(range(cut.inline))
    for offset, limit in cut.slices():
        covered.extend(range(offset, min(offset + limit, tasks)))
    assert covered == list(range(tasks))
    assert len(cut.slices()) == cut.tokens == cut.requests - 1


def test_the_first_token_starts_where_the_inline_batch_ends() -> None:
    assert batch(350, 100).slices() == [(100, 100), (200, 100), (300, 100)]


class ScanTask(NamedTuple):
    location: str
    start: int
    length: int
    data_sequence_number: int | None = None
    file_sequence_number: int | None = None
    manifest_location: str | None = None
    manifest_position: int | None = None


def ordered(tasks: list[ScanTask]) -> list[ScanTask]:
    kinds = [pa.string(), *[pa.int64()] * 4, pa.string(), pa.int64()]
    columns = zip(*tasks, strict=True) if tasks else [()] * 7
    table = TaskTable(*(pa.array(column, kind) for column, kind in zip(columns, kinds, strict=True)))
    return [tasks[index] for index in total_order(table)]


def java_key(task: ScanTask) -> tuple[object, ...]:
    """The order spelled out: nulls first, texts as lists of UTF-16 units."""
    units = [value.encode("utf-16-be") if isinstance(value, str) else value for value in task]
    return tuple((value is not None, value or 0 if not isinstance(value, bytes) else value) for value in units)


def test_paths_are_compared_by_utf16_units() -> None:
    # By code points, and by UTF-8 bytes, the order of the last two would be the other one.
    tasks = [ScanTask("\uff00", 0, 1), ScanTask("\U0001f600", 0, 1), ScanTask("a", 0, 1)]
    assert ordered(tasks) == [tasks[2], tasks[1], tasks[0]]


def test_missing_sequence_numbers_and_manifests_come_first() -> None:
    tasks = [
        ScanTask("a", 0, 1, 1, 1, "m", 0),
        ScanTask("a", 0, 1, 1, 1, "m", None),
        ScanTask("a", 0, 1, 1, 1, None, 5),
        ScanTask("a", 0, 1, 1, None, "m", 0),
        ScanTask("a", 0, 1, None, 9, "m", 0),
    ]
    assert ordered(tasks) == tasks[::-1]


def test_one_path_in_several_entries_is_told_apart_by_each_key() -> None:
    entries = [
        ScanTask("a", 0, 10, 1, 1, "m0", 0),
        ScanTask("a", 0, 10, 1, 1, "m0", 1),
        ScanTask("a", 0, 10, 1, 1, "m1", 0),
        ScanTask("a", 0, 10, 1, 2, "m0", 0),
        ScanTask("a", 0, 10, 2, 1, "m0", 0),
        ScanTask("a", 0, 11, 1, 1, "m0", 0),
        ScanTask("a", 1, 10, 1, 1, "m0", 0),
        ScanTask("b", 0, 10, 1, 1, "m0", 0),
    ]
    for shift in range(len(entries)):
        assert ordered(entries[shift:] + entries[:shift][::-1]) == entries


@given(
    st.lists(
        st.builds(
            ScanTask,
            st.text(max_size=2),
            st.integers(0, 1),
            st.integers(0, 1),
            st.none() | st.integers(0, 1),
            st.none() | st.integers(0, 1),
            st.none() | st.text(max_size=1),
            st.none() | st.integers(0, 1),
        ),
        max_size=12,
    ),
    st.randoms(),
)
def test_the_order_does_not_depend_on_the_order_of_planning(tasks: list[ScanTask], rng: random.Random) -> None:
    shuffled = list(tasks)
    rng.shuffle(shuffled)
    assert ordered(tasks) == ordered(shuffled) == sorted(tasks, key=java_key)
