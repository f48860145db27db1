"""Splitting files and packing the pieces into combined tasks, as ``TableScanUtil`` and ``BinPacking`` do.

Iceberg's order of files varies from run to run (manifests are read in parallel); here files come in recorded
order. Adaptive split sizing is not applied unless asked for through :func:`adjust_split_size`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from planning_health.errors import InputError
from planning_health.planning.comparable import Ints, Mask

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

MIB = 1024 * 1024
MIN_SPLIT_SIZE = 16 * MIB
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


def adjust_split_size(scan_size: int, parallelism: int, split_size: int) -> int:
    """Lower the split size of a small scan so that all workers get work (Spark's adaptive split sizing).

    Args:
        scan_size: bytes to read.
        parallelism: number of tasks that can run at once.
        split_size: the configured split size.
    """
    splits = -(-scan_size // split_size)
    adjusted = max(scan_size // parallelism, min(MIN_SPLIT_SIZE, split_size))
    return adjusted if splits < parallelism else split_size


@dataclass(frozen=True)
class Splits:
    """Pieces of files: piece ``i`` is ``length[i]`` bytes from ``offset[i]`` of file number ``file[i]``.

    ``mergeable`` is false for files that cannot be split.
    """

    file: Ints
    offset: Ints
    length: Ints
    mergeable: Mask

    def __len__(self) -> int:
        return len(self.file)


def split_files(sizes: Ints, formats: pa.Array, split_offsets: pa.Array, target_size: int) -> Splits:
    """Split files at their own offsets where they are well defined, at the target size elsewhere.

    Args:
        sizes: file sizes in bytes.
        formats: file formats (upper case).
        split_offsets: lists of offsets, null where a file has none.
        target_size: bytes of a fixed-size split.
    """
    splittable = np.isin(np.asarray(formats.to_numpy(zero_copy_only=False), dtype=object), _SPLITTABLE)
    counts, values, starts = _offset_lists(split_offsets)
    own_offsets = splittable & _well_defined(counts, values, starts, sizes)
    pieces = np.where(own_offsets, counts, np.where(splittable, -(-sizes // target_size), 1))
    file = np.repeat(np.arange(len(sizes)), pieces)
    index = np.arange(len(file)) - np.repeat(np.cumsum(pieces) - pieces, pieces)
    offset = np.where(splittable[file], index * target_size, 0)
    by_offsets = own_offsets[file]
    offset[by_offsets] = values[(starts[file] + index)[by_offsets]]
    following = np.append(offset[1:], 0)
    last = index == pieces[file] - 1
    return Splits(file, offset, np.where(last, sizes[file], following) - offset, splittable[file])


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


def pack(weights: Sequence[int], target: int, lookback: int) -> list[list[int]]:
    """Pack items in order, first fit over the open bins, emitting the largest bin on overflow.

    Args:
        weights: weight of each item.
        target: largest weight of a bin (a single larger item still gets one).
        lookback: number of open bins.

    Returns:
        Bins in the order in which Iceberg emits them, each a list of item indexes.
    """
    emitted: list[list[int]] = []
    room: list[int] = []  # room left in each open bin
    items: list[list[int]] = []
    for index, weight in enumerate(weights):
        for position, left in enumerate(room):
            if weight <= left:
                room[position] = left - weight
                items[position].append(index)
                break
        else:
            room.append(target - weight)
            items.append([index])
            if len(room) > lookback:
                largest = room.index(min(room))
                del room[largest]
                emitted.append(items.pop(largest))
    return emitted + items


@dataclass(frozen=True, slots=True)
class FilePiece:
    """A part of a data file in a combined task: file number in the scan, offset and length in bytes."""

    file: int
    offset: int
    length: int


def combine(splits: Splits, delete_counts: Ints, delete_bytes: Ints, options: SplitOptions) -> list[list[FilePiece]]:
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
    bins = pack(weights.tolist(), options.target_size, options.lookback)
    return [_merge(splits, items) for items in bins]


def _merge(splits: Splits, items: list[int]) -> list[FilePiece]:
    pieces: list[FilePiece] = []
    for item in items:
        piece = FilePiece(int(splits.file[item]), int(splits.offset[item]), int(splits.length[item]))
        last = pieces[-1] if pieces else None
        joins = last is not None and last.file == piece.file and last.offset + last.length == piece.offset
        if last is not None and joins and splits.mergeable[item]:
            pieces[-1] = FilePiece(last.file, last.offset, last.length + piece.length)
        else:
            pieces.append(piece)
    return pieces
