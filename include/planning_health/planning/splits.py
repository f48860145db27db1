"""Splitting files and packing the pieces into combined tasks, as ``TableScanUtil`` and ``BinPacking`` do.

Iceberg's order of files varies from run to run (manifests are read in parallel); here files come in recorded
order. Spark's adaptive split sizing, which lowers the target of small scans, is not simulated.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from planning_health.errors import InputError
from planning_health.planning.comparable import Ints, Mask

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

MIB = 1024 * 1024
_COMPILE_FROM = 20_000
_COMPILE_FROM_WHERE_LOADED = 500
_SPLITTABLE = ("AVRO", "ORC", "PARQUET")


@dataclass(frozen=True, slots=True)
class SplitOptions:
    """How files are split and packed; sizes in bytes.

    Attributes:
        target_size: largest weight of a combined task.
        lookback: number of open bins.
        open_file_cost: least weight of a file or delete file.
    """

    target_size: int = 128 * MIB
    lookback: int = 10
    open_file_cost: int = 4 * MIB

    @classmethod
    def of_properties(cls, properties: Mapping[str, str]) -> SplitOptions:
        """Read a table's ``read.split.*`` properties.

        Raises:
            InputError: a property is not a number in its range.
        """
        defaults = cls()
        return cls(
            _number(properties, "read.split.target-size", defaults.target_size, 1),
            _number(properties, "read.split.planning-lookback", defaults.lookback, 1),
            _number(properties, "read.split.open-file-cost", defaults.open_file_cost, 0),
        )


def _number(properties: Mapping[str, str], key: str, default: int, least: int) -> int:
    text = properties.get(key)
    if text is None:
        return default
    try:
        value = int(text)
    except ValueError as error:
        raise InputError(f"{key} = {text!r}: expected a whole number") from error
    if value < least:
        raise InputError(f"{key} = {text!r}: expected at least {least}")
    return value


@dataclass(frozen=True)
class Splits:
    """Pieces of files: piece ``i`` is ``length[i]`` bytes from ``offset[i]`` of file number ``file[i]``."""

    file: Ints
    offset: Ints
    length: Ints

    def __len__(self) -> int:
        return len(self.file)


class SplittableFiles:
    """How files can be split, worked out once for all scans of a table.

    Args:
        sizes: file sizes in bytes.
        formats: file formats (upper case).
        split_offsets: lists of offsets, null where a file has none.
    """

    def __init__(self, sizes: Ints, formats: pa.Array | pa.ChunkedArray, split_offsets: pa.Array) -> None:
        self._sizes = sizes
        splittable = pc.is_in(formats, value_set=pa.array(_SPLITTABLE))
        self._splittable: Mask = np.asarray(splittable.to_numpy(zero_copy_only=False), dtype=np.bool_)
        self._counts, self._values, self._starts = _offset_lists(split_offsets)
        well_defined = _well_defined(self._counts, self._values, self._starts, sizes)
        self._own_offsets = self._splittable & well_defined

    def split(self, rows: Ints, target_size: int) -> Splits:
        """Split files at their own offsets where they are well defined, at the target size elsewhere.

        Args:
            rows: which files.
            target_size: bytes of a fixed-size split.
        """
        sizes, splittable, own_offsets = self._sizes[rows], self._splittable[rows], self._own_offsets[rows]
        pieces = np.where(own_offsets, self._counts[rows], np.where(splittable, -(-sizes // target_size), 1))
        file = np.repeat(np.arange(len(sizes)), pieces)
        index = np.arange(len(file)) - np.repeat(np.cumsum(pieces) - pieces, pieces)
        offset = np.where(splittable[file], index * target_size, 0)
        by_offsets = own_offsets[file]
        offset[by_offsets] = self._values[(self._starts[rows][file] + index)[by_offsets]]
        following = np.append(offset[1:], 0)
        last = index == pieces[file] - 1
        return Splits(file, offset, np.where(last, sizes[file], following) - offset)


def _offset_lists(split_offsets: pa.Array) -> tuple[Ints, Ints, Ints]:
    counts = split_offsets.value_lengths().fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64)
    values = split_offsets.flatten().to_numpy(zero_copy_only=False).astype(np.int64)
    return counts, values, np.cumsum(counts) - counts


def _well_defined(counts: Ints, values: Ints, starts: Ints, sizes: Ints) -> Mask:
    """Offsets ascend strictly and the last is inside the file."""
    result = counts > 0
    if not len(values):
        return result
    last = values[np.clip(starts + counts - 1, 0, len(values) - 1)]
    result &= last < sizes
    owner = np.repeat(np.arange(len(counts)), counts)
    descending = (np.diff(values) <= 0) & (np.diff(owner) == 0)
    result[owner[1:][descending]] = False
    return result


def pack(weights: Sequence[int] | Ints, target: int, lookback: int) -> list[list[int]]:
    """Pack items in order, first fit over the open bins, emitting the largest bin on overflow.

    Args:
        weights: weight of each item.
        target: largest weight of a bin (a single larger item still gets one).
        lookback: number of open bins.

    Returns:
        Bins in the order in which Iceberg emits them, each a list of item indexes.
    """
    ranks = _pack_ranks(np.asarray(weights, dtype=np.int64), target, lookback)
    order, starts = _by_rank(ranks)
    return [items.tolist() for items in np.split(order, starts[1:])] if len(order) else []


def _pack_ranks(weights: Ints, target: int, lookback: int) -> Ints:
    """Return for each item the emission rank of its bin."""
    enough = _COMPILE_FROM_WHERE_LOADED if "numba" in sys.modules else _COMPILE_FROM
    packer = _compiled_packer() if len(weights) > enough else _first_fit
    return packer(weights, target, lookback)


@cache
def _compiled_packer() -> Callable[[Ints, int, int], Ints]:
    """Compile the packer: packing is sequential, and slow in Python; small inputs are not worth loading Numba."""
    import numba

    compiled: Callable[[Ints, int, int], Ints] = numba.njit(cache=True)(_first_fit)
    return compiled


def _first_fit(weights: Ints, target: int, lookback: int) -> Ints:
    bin_of_item = np.empty(len(weights), dtype=np.int64)
    rank_of_bin = np.empty(len(weights), dtype=np.int64)
    room = np.empty(lookback + 1, dtype=np.int64)  # of the open bins, in the order of opening
    opened = np.empty(lookback + 1, dtype=np.int64)
    count = bins = emitted = 0
    for item in range(len(weights)):
        weight = weights[item]
        position = 0
        while position < count and room[position] < weight:
            position += 1
        if position < count:
            room[position] -= weight
            bin_of_item[item] = opened[position]
            continue
        room[count] = target - weight
        opened[count] = bins
        bin_of_item[item] = bins
        bins += 1
        count += 1
        if count > lookback:
            largest = 0
            for other in range(1, count):
                if room[other] < room[largest]:
                    largest = other
            rank_of_bin[opened[largest]] = emitted
            emitted += 1
            for later in range(largest + 1, count):
                room[later - 1] = room[later]
                opened[later - 1] = opened[later]
            count -= 1
    for position in range(count):
        rank_of_bin[opened[position]] = emitted
        emitted += 1
    return rank_of_bin[bin_of_item]


def _by_rank(ranks: Ints) -> tuple[Ints, Ints]:
    """Return (items by bin, start of each bin)."""
    order = np.argsort(ranks, kind="stable")
    starts = np.flatnonzero(np.diff(ranks[order], prepend=-1))
    return order, starts


@dataclass(frozen=True, slots=True)
class FilePiece:
    """A part of a data file in a combined task: file number in the scan, offset and length in bytes."""

    file: int
    offset: int
    length: int


@dataclass(frozen=True)
class CombinedTasks:
    """Combined tasks in Iceberg's order; task ``t`` holds the pieces ``starts[t]`` to ``starts[t + 1]``.

    Iterating yields each task as a list of :class:`FilePiece`.
    """

    starts: Ints
    file: Ints
    offset: Ints
    length: Ints

    def __len__(self) -> int:
        return len(self.starts) - 1

    def __iter__(self) -> Iterator[list[FilePiece]]:
        columns = (self.file.tolist(), self.offset.tolist(), self.length.tolist())
        pieces = [FilePiece(*values) for values in zip(*columns, strict=True)]
        for start, end in pairwise(self.starts.tolist()):
            yield pieces[start:end]


def combine(splits: Splits, delete_counts: Ints, delete_bytes: Ints, options: SplitOptions) -> CombinedTasks:
    """Pack splits into combined tasks and merge neighbours within one task.

    Args:
        splits: the pieces of all files.
        delete_counts: number of delete files of each file.
        delete_bytes: their bytes (a deletion vector's content size).
        options: target size, look-back and open cost.
    """
    weights = np.maximum(
        splits.length + delete_bytes[splits.file], (1 + delete_counts[splits.file]) * options.open_file_cost
    )
    ranks = _pack_ranks(weights, options.target_size, options.lookback)
    order, _ = _by_rank(ranks)
    ranks, file, offset, length = ranks[order], splits.file[order], splits.offset[order], splits.length[order]
    joins = np.zeros(len(order), dtype=np.bool_)
    joins[1:] = (ranks[1:] == ranks[:-1]) & (file[1:] == file[:-1]) & (offset[:-1] + length[:-1] == offset[1:])
    firsts = np.flatnonzero(~joins)
    merged = np.add.reduceat(length, firsts) if len(firsts) else length
    tasks = np.flatnonzero(np.diff(ranks[firsts], prepend=-1))
    return CombinedTasks(np.append(tasks, len(firsts)), file[firsts], offset[firsts], merged)
