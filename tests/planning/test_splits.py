"""Splitting and packing, with the examples of the specification."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planning_health.errors import InputError
from planning_health.planning.splits import (
    MIB,
    SplitOptions,
    Splits,
    SplittableFiles,
    _compiled_packer,
    _first_fit,
    combine,
    pack,
)


def split(sizes: list[int], formats: list[str], offsets: list[list[int] | None], target: int) -> Splits:
    files = SplittableFiles(np.array(sizes), pa.array(formats), pa.array(offsets, type=pa.list_(pa.int64())))
    return files.split(np.arange(len(sizes)), target)


def pieces(
    size: int, offsets: list[int] | None, file_format: str = "PARQUET", target: int = 128
) -> list[tuple[int, int]]:
    splits = split([size], [file_format], [offsets], 128)
    return list(zip(splits.offset.tolist(), splits.length.tolist(), strict=True))


def test_a_file_without_offsets_is_cut_at_the_target_size() -> None:
    assert pieces(300, None) == [(0, 128), (128, 128), (256, 44)]
    assert pieces(0, None) == []


def test_a_file_with_offsets_is_cut_there_whatever_the_target() -> None:
    assert pieces(300, [4, 100, 290]) == [(4, 96), (100, 190), (290, 10)]


@pytest.mark.parametrize("offsets", [[4, 4, 100], [100, 4], [4, 300], [4, 400], []])
def test_offsets_that_are_not_well_defined_are_ignored_as_a_whole(offsets: list[int]) -> None:
    assert pieces(300, offsets) == pieces(300, None)


def test_offsets_are_judged_file_by_file() -> None:
    splits = split([300, 300, 300], ["PARQUET"] * 3, [[4, 100], [100, 4], [4, 200]], 128)
    assert splits.file.tolist() == [0, 0, 1, 1, 1, 2, 2]
    assert splits.offset.tolist() == [4, 100, 0, 128, 256, 4, 200]
    assert splits.length.tolist() == [96, 200, 128, 128, 44, 196, 100]
    beyond_its_end = split([300, 300], ["PARQUET"] * 2, [[4, 300], [4, 100]], 400)
    assert beyond_its_end.offset.tolist() == [0, 4, 100]


def test_a_format_that_cannot_be_split_stays_whole() -> None:
    assert pieces(300, [4, 100], "PUFFIN") == [(0, 300)]


@pytest.mark.parametrize(
    ("sizes", "expected"),
    [
        ([1] * 40, [[1] * 32, [1] * 8]),
        ([300], [[128], [128], [44]]),
        ([120, 10, 10], [[120], [10, 10]]),
    ],
)
def test_examples_of_the_specification(sizes: list[int], expected: list[list[int]]) -> None:
    splits = split([size * MIB for size in sizes], ["PARQUET"] * len(sizes), [None] * len(sizes), 128 * MIB)
    none = np.zeros(len(sizes), dtype=np.int64)
    tasks = combine(splits, none, none, SplitOptions())
    assert [[piece.length // MIB for piece in task] for task in tasks] == expected


def test_contiguous_splits_of_one_file_are_merged_in_one_task() -> None:
    splits = split([30], ["ORC"], [[0, 10, 20]], 100)
    none = np.zeros(1, dtype=np.int64)
    (task,) = combine(splits, none, none, SplitOptions(100, 10, 1))
    assert [(piece.offset, piece.length) for piece in task] == [(0, 30)]


def test_pieces_that_do_not_follow_each_other_in_one_file_are_not_merged() -> None:
    none = np.zeros(2, dtype=np.int64)
    apart = split([220], ["ORC"], [[0, 60, 160, 200]], 100)  # 60, 100, 40 and 20 bytes: the third joins the first
    tasks = combine(apart, none, none, SplitOptions(100, 10, 1))
    assert len(tasks) == 3
    assert [[(piece.offset, piece.length) for piece in task] for task in tasks] == [
        [(0, 60), (160, 40)],
        [(60, 100)],
        [(200, 20)],
    ]
    of_two_files = split([4, 100], ["ORC", "ORC"], [None, [4, 50]], 200)  # the second begins where the first ends
    (task,) = combine(of_two_files, none, none, SplitOptions(200, 10, 1))
    assert [(piece.file, piece.offset, piece.length) for piece in task] == [(0, 0, 4), (1, 4, 96)]


def test_a_split_weighs_at_least_the_cost_of_opening_its_file() -> None:
    none = np.zeros(5, dtype=np.int64)
    tasks = combine(split([1] * 5, ["ORC"] * 5, [None] * 5, 100), none, none, SplitOptions(100, 10, 40))
    assert [len(task) for task in tasks] == [2, 2, 1]


def test_on_overflow_the_largest_bin_leaves_first_and_the_first_of_equals() -> None:
    assert pack([6, 9, 9, 8], target=10, lookback=2) == [[1], [2], [0], [3]]


@given(st.lists(st.integers(0, 20), max_size=60), st.integers(1, 20), st.integers(1, 5))
def test_packing_loses_nothing_and_overfills_only_with_single_items(
    weights: list[int], target: int, lookback: int
) -> None:
    bins = pack(weights, target, lookback)
    assert sorted(item for items in bins for item in items) == list(range(len(weights)))
    assert all(sum(weights[item] for item in items) <= target or len(items) == 1 for items in bins)


def test_properties_set_the_options_and_bad_ones_are_named() -> None:
    assert SplitOptions.of_properties({}) == SplitOptions(128 * MIB, 10, 4 * MIB)
    properties = {
        "read.split.target-size": "1000",
        "read.split.planning-lookback": "7",
        "read.split.open-file-cost": "0",
    }
    assert SplitOptions.of_properties(properties) == SplitOptions(1000, 7, 0)
    with pytest.raises(InputError, match=r"read.split.planning-lookback = '0'"):
        SplitOptions.of_properties({"read.split.planning-lookback": "0"})
    with pytest.raises(InputError, match="whole number"):
        SplitOptions.of_properties({"read.split.open-file-cost": "4MB"})


def test_the_compiled_packer_packs_like_the_plain_one() -> None:
    weights = np.random.default_rng(5).integers(0, 100, 5000)
    assert (_compiled_packer()(weights, 120, 10) == _first_fit(weights, 120, 10)).all()
