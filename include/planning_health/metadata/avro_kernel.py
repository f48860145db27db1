"""The compiled part of the manifest decoder: walks Avro records in a byte buffer (Numba).

A *program* describes one record schema as a flat list of instructions, executed once a record:

====== =============================================================================================
opcode meaning of the operand
====== =============================================================================================
UNION  a union with null: when the null branch is read, skip this many instructions (third column: null's index)
LONG   zigzag varint into the integer slot
SPAN   length-prefixed bytes: offset and length into the span slot
FIXED  as many bytes as the third column says: offset and length into the span slot
LONGS  array of varints: number of items into the integer slot, items appended to list (third column)
MAP    metric map with bytes (third column 1) or varint values (0); the operand is the map's index
====== =============================================================================================
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt
from numba import njit

UNION: Final = 0
LONG: Final = 1
SPAN: Final = 2
FIXED: Final = 3
LONGS: Final = 4
MAP: Final = 5

Bytes = npt.NDArray[np.uint8]
Ints = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

_LONG_MAX: Final = 0x7FFF_FFFF_FFFF_FFFF


@njit(cache=True, nogil=True)
def read_long(buffer: Bytes, position: int, end: int) -> tuple[int, int]:
    """One zigzag varint and the position behind it, which is ``end + 1`` when the bytes end too early or are no number.

    Nothing is raised here: a function that raises is not inlined into the loops, which makes them ten times slower.
    """
    if position >= end:
        return 0, end + 1
    byte = np.int64(buffer[position])
    position += 1
    value = byte & 0x7F
    shift = 7
    while byte >= 0x80:
        if position >= end or shift > 63:
            return 0, end + 1
        byte = np.int64(buffer[position])
        position += 1
        value |= (byte & 0x7F) << shift
        shift += 7
    return int(((value >> 1) & _LONG_MAX) ^ -(value & 1)), position


@njit(cache=True, nogil=True)
def _find(ids: Ints, wanted: int) -> int:
    """Index of an id in a sorted list, or -1."""
    low, high = 0, len(ids)
    while low < high:
        middle = (low + high) // 2
        if ids[middle] < wanted:
            low = middle + 1
        else:
            high = middle
    return low if low < len(ids) and ids[low] == wanted else -1


@njit(cache=True, nogil=True)
def read_count(buffer: Bytes, position: int, end: int) -> tuple[int, int]:
    """Number of items of an array's next block; the position is ``end + 1`` when the bytes are damaged."""
    count, position = read_long(buffer, position, end)
    if count < 0:
        count = -count
        _, position = read_long(buffer, position, end)
    return (count, position) if 0 <= count <= end - position else (0, end + 1)


@njit(cache=True, nogil=True)
def _read_map(
    buffer: Bytes,
    position: int,
    end: int,
    row: int,
    has_bytes: bool,
    recorded: Ints,
    values: Ints,
    lengths: Ints,
    column_of: Ints,
    sizes: Ints,
    largest: Ints,
    other_ids: Ints,
    other_sizes: Ints,
) -> int:
    """One metric map; ``values``/``lengths`` are (column, row).

    Returns:
        The position behind it, ``end + 1`` when the bytes are damaged.
    """
    highest = largest[0]
    while True:
        count, position = read_count(buffer, position, end)
        if count == 0:
            break
        for _ in range(count):
            start = position
            key, position = read_long(buffer, position, end)
            value, position = read_long(buffer, position, end)
            offset = position
            if has_bytes:
                if value < 0 or value > end - position:
                    return end + 1
                position += value
            if position > end:
                return end + 1
            if 0 <= key < len(sizes):
                sizes[key] += position - start
                highest = max(highest, key)
                column = column_of[key] if key < len(column_of) else -1
            else:
                place = _find(other_ids, key)
                if place >= 0:
                    other_sizes[place] += position - start
                column = _find(recorded, key)
            if column >= 0:
                values[column, row] = offset if has_bytes else value
                lengths[column, row] = value if has_bytes else 1
    largest[0] = highest
    return position


@njit(cache=True, nogil=True)
def _read_longs(buffer: Bytes, position: int, end: int, values: Ints, used: Ints, which: int) -> tuple[int, int]:
    """One array of varints, appended to ``values``.

    Returns:
        Its number of items and the position behind it, ``end + 1`` when the bytes are damaged.
    """
    total = 0
    while True:
        count, position = read_count(buffer, position, end)
        if count == 0:
            return total, position
        for _ in range(count):
            item, position = read_long(buffer, position, end)
            values[used[which]] = item
            used[which] += 1
        total += count


@njit(cache=True, nogil=True)
def walk(  # noqa: C901 - one branch an opcode
    buffer: Bytes,
    records: int,
    first_row: int,
    program: Ints,
    recorded: Ints,
    base: int,
    longs: Ints,
    longs_valid: Mask,
    starts: Ints,
    lengths: Ints,
    list_values: Ints,
    list_used: Ints,
    map_values: Ints,
    map_lengths: Ints,
    column_of: Ints,
    sizes: Ints,
    largest: Ints,
    other_ids: Ints,
    other_sizes: Ints,
) -> int:
    """Decodes one block.

    Args:
        buffer: the block's decompressed bytes.
        records: records in the block.
        first_row: the row of its first record.
        program: (instructions, 3): opcode, operand, third column.
        recorded: sorted ids of the recorded columns.
        base: added to every offset, so that offsets count in all blocks laid end to end.
        longs: (slots, rows) integers.
        longs_valid: which of them were there.
        starts: (slots, rows) offsets of spans.
        lengths: their lengths, left at -1 where null.
        list_values: (lists, capacity) items of LONGS arrays.
        list_used: how many items each list holds.
        map_values: (maps, recorded, rows): integers, or offsets of bytes.
        map_lengths: the same shape: lengths of bytes, left at -1 where the map has no such key.
        column_of: index in ``recorded`` by field id, -1 for others; ids beyond it are not recorded, or reserved ones.
        sizes: encoded bytes by field id, for ids below its length.
        largest: one number, raised to the largest of those ids.
        other_ids: sorted larger ids.
        other_sizes: encoded bytes by position in ``other_ids``.

    Returns:
        How many of the buffer's bytes the records take.

    Raises:
        ValueError: when the bytes are no records of this schema, or end too early.
    """
    position = 0
    end = len(buffer)
    columns = len(recorded)
    for row in range(first_row, first_row + records):
        instruction = 0
        while instruction < len(program):
            opcode, operand, extra = program[instruction, 0], program[instruction, 1], program[instruction, 2]
            instruction += 1
            if opcode == UNION:
                branch, position = read_long(buffer, position, end)
                if branch == extra:
                    instruction += operand
            elif opcode == LONG:
                longs[operand, row], position = read_long(buffer, position, end)
                longs_valid[operand, row] = True
            elif opcode in (SPAN, FIXED):
                length = extra
                if opcode == SPAN:
                    length, position = read_long(buffer, position, end)
                if length < 0 or length > end - position:
                    raise ValueError("a value is longer than its block")
                starts[operand, row] = base + position
                lengths[operand, row] = length
                position += length
            elif opcode == LONGS:
                longs[operand, row], position = _read_longs(buffer, position, end, list_values[extra], list_used, extra)
                longs_valid[operand, row] = True
            else:
                position = _read_map(
                    buffer,
                    position,
                    end,
                    row,
                    extra == 1,
                    recorded,
                    map_values[operand, :columns],
                    map_lengths[operand, :columns],
                    column_of,
                    sizes,
                    largest,
                    other_ids,
                    other_sizes,
                )
                if extra == 1:
                    for column in range(columns):
                        if map_lengths[operand, column, row] >= 0:
                            map_values[operand, column, row] += base
            if position > end:
                raise ValueError("a block ends inside a record, or holds other values than its schema says")
    return position


@njit(cache=True, nogil=True)
def gather(buffer: Bytes, starts: Ints, lengths: Ints, offsets: Ints) -> Bytes:
    """Copies the spans one behind another; ``offsets`` (n + 1) says where each goes."""
    out = np.empty(offsets[-1], dtype=np.uint8)
    for row in range(len(starts)):
        length = lengths[row]
        if length > 0:
            out[offsets[row] : offsets[row] + length] = buffer[starts[row] : starts[row] + length]
    return out


@njit(cache=True, nogil=True)
def trim_unscaled(buffer: Bytes, starts: Ints, lengths: Ints) -> None:
    """Shortens big-endian two's-complement spans to the fewest bytes, in place (Iceberg's decimal form)."""
    for row in range(len(starts)):
        while lengths[row] > 1:
            first, second = buffer[starts[row]], buffer[starts[row] + 1]
            if (first == 0 and second < 128) or (first == 255 and second >= 128):
                starts[row] += 1
                lengths[row] -= 1
            else:
                break
