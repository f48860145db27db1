"""The compiled part of a trim: turns manifest entries into entries of another schema with fewer statistics (Numba).

An entry is read once. The *source program* has a row for each field in the order of the source schema: opcode of
``avro_kernel`` (LONG, SPAN, FIXED, LONGS or MAP), its operand, the index of null in its union (−1: not a union), and
what the field means (a constant of this module, or PLAIN). The *target program* has a row for each field of the new
entry: what to write, the source field, the index of null (−1: required), and a number for CONSTANT.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt
from numba import njit

from planning_health.metadata.avro_kernel import FIXED, LONG, LONGS, SPAN, read_count, read_long

Bytes = npt.NDArray[np.uint8]
Ints = npt.NDArray[np.int64]

PLAIN: Final = 0
STATUS: Final = 1
SNAPSHOT_ID: Final = 2
SEQUENCE_NUMBER: Final = 3
FILE_SEQUENCE_NUMBER: Final = 4
FIRST_ROW_ID: Final = 5
RECORD_COUNT: Final = 6
COUNTS_MAP: Final = 7
LOWER_MAP: Final = 8
UPPER_MAP: Final = 9

COPY: Final = 0
CONSTANT: Final = 1
INHERITED: Final = 2
"""Target actions: the source field's bytes; a number; the entry's own or inherited number of that meaning."""

_ADDED: Final = 1
_DELETED: Final = 2
_SLOTS: Final = 7
_ABSENT: Final = -(1 << 62)
"""Stands for a number that is null."""

DROPPED: Final = -2
"""In the rule: the column loses its statistics."""


@njit(cache=True, nogil=True)
def _write_long(out: Bytes, at: int, value: int) -> int:
    number = np.uint64((value << 1) ^ (value >> 63))
    while number >= np.uint64(0x80):
        out[at] = np.uint8((number & np.uint64(0x7F)) | np.uint64(0x80))
        number >>= np.uint64(7)
        at += 1
    out[at] = np.uint8(number)
    return at + 1


@njit(cache=True, nogil=True)
def _copy(buffer: Bytes, start: int, stop: int, out: Bytes, at: int) -> int:
    for position in range(start, stop):
        out[at] = buffer[position]
        at += 1
    return at


@njit(cache=True, nogil=True)
def _character(buffer: Bytes, at: int, stop: int) -> int:
    """Bytes of the UTF-8 character that begins here; 0 where the bytes are none."""
    first = buffer[at]
    if first < 0x80:
        return 1
    lowest, highest = 0x80, 0xBF
    if 0xC2 <= first <= 0xDF:
        length = 2
    elif 0xE0 <= first <= 0xEF:
        length = 3
        lowest = 0xA0 if first == 0xE0 else 0x80
        highest = 0x9F if first == 0xED else 0xBF
    elif 0xF0 <= first <= 0xF4:
        length = 4
        lowest = 0x90 if first == 0xF0 else 0x80
        highest = 0x8F if first == 0xF4 else 0xBF
    else:
        return 0
    if at + length > stop or not lowest <= buffer[at + 1] <= highest:
        return 0
    for position in range(at + 2, at + length):
        if not 0x80 <= buffer[position] <= 0xBF:
            return 0
    return length


@njit(cache=True, nogil=True)
def _text_cut(buffer: Bytes, start: int, stop: int, length: int) -> int:
    """Where the first so many characters end; −1 where the bytes are no UTF-8."""
    at, count, cut = start, 0, stop
    while at < stop:
        if count == length:
            cut = at
        size = _character(buffer, at, stop)
        if size == 0:
            return -1
        at += size
        count += 1
    return cut


@njit(cache=True, nogil=True)
def _write_rounded_text(buffer: Bytes, start: int, cut: int, out: Bytes, at: int) -> int:
    """The text up to ``cut``, its last character that can be replaced by the next one; ``at`` where none can."""
    stop = cut
    while stop > start:
        first = stop - 1
        while first > start and (buffer[first] & 0xC0) == 0x80:
            first -= 1
        size = stop - first
        point = int(buffer[first])
        if size > 1:
            point &= 0x7F >> size
            for position in range(first + 1, stop):
                point = (point << 6) | (buffer[position] & 0x3F)
        point += 1
        if 0xD800 <= point <= 0xDFFF:
            point = 0xE000
        if point <= 0x10FFFF:
            return int(_write_character(out, _copy(buffer, start, first, out, at), point))
        stop = first
    return at


@njit(cache=True, nogil=True)
def _write_character(out: Bytes, at: int, point: int) -> int:
    if point < 0x80:
        out[at] = point
        return at + 1
    if point < 0x800:
        out[at] = 0xC0 | (point >> 6)
    elif point < 0x10000:
        out[at] = 0xE0 | (point >> 12)
        at += 1
        out[at] = 0x80 | ((point >> 6) & 0x3F)
    else:
        out[at] = 0xF0 | (point >> 18)
        out[at + 1] = 0x80 | ((point >> 12) & 0x3F)
        at += 2
        out[at] = 0x80 | ((point >> 6) & 0x3F)
    out[at + 1] = 0x80 | (point & 0x3F)
    return at + 2


@njit(cache=True, nogil=True)
def _write_rounded_bytes(buffer: Bytes, start: int, cut: int, out: Bytes, at: int) -> int:
    for position in range(cut - 1, start - 1, -1):
        if buffer[position] < 0xFF:
            at = _copy(buffer, start, position, out, at)
            out[at] = buffer[position] + 1
            return at + 1
    return at


@njit(cache=True, nogil=True)
def _write_bound(
    buffer: Bytes, start: int, cut: int, upper: bool, text: bool, scratch: Bytes, out: Bytes, at: int
) -> int:
    """A bound cut at ``cut`` with its length before it; ``at`` where an upper bound cannot be rounded up."""
    if not upper:
        at = _write_long(out, at, cut - start)
        return int(_copy(buffer, start, cut, out, at))
    if text:
        length = _write_rounded_text(buffer, start, cut, scratch, 0)
    else:
        length = _write_rounded_bytes(buffer, start, cut, scratch, 0)
    if length == 0:
        return at
    at = _write_long(out, at, length)
    return int(_copy(scratch, 0, length, out, at))


@njit(cache=True, nogil=True)
def _place(ids: Ints, wanted: int) -> int:
    for place in range(len(ids)):
        if ids[place] == wanted:
            return place
    return -1


@njit(cache=True, nogil=True)
def _write_pair(
    buffer: Bytes,
    start: int,
    value_at: int,
    stop: int,
    key: int,
    meaning: int,
    lengths: Ints,
    texts: Ints,
    other_ids: Ints,
    other_lengths: Ints,
    scratch: Bytes,
    out: Bytes,
    at: int,
) -> int:
    """What the rule leaves of one pair, appended to ``out``; ``at`` where nothing is left."""
    length, text = DROPPED, False
    if 0 <= key < len(lengths):
        length, text = lengths[key], texts[key] == 1
    else:
        place = _place(other_ids, key)
        if place >= 0:
            length = other_lengths[place]
    if length == DROPPED or (meaning != COUNTS_MAP and length == 0):
        return at
    if meaning == COUNTS_MAP or length < 0 or stop - value_at <= length:
        return int(_copy(buffer, start, stop, out, at))
    cut = _text_cut(buffer, value_at, stop, length) if text else value_at + length
    if cut == stop:
        return int(_copy(buffer, start, stop, out, at))
    if cut < 0:
        return at
    bound_at = _write_long(out, at, key)
    after = _write_bound(buffer, value_at, cut, meaning == UPPER_MAP, text, scratch, out, bound_at)
    return after if after > bound_at else at


@njit(cache=True, nogil=True)
def _trim_map(
    buffer: Bytes,
    position: int,
    end: int,
    meaning: int,
    lengths: Ints,
    texts: Ints,
    other_ids: Ints,
    other_lengths: Ints,
    scratch: Bytes,
    out: Bytes,
    at: int,
) -> tuple[int, int, int]:
    """The pairs of one metric map that the rule keeps, appended to ``out`` at ``at``.

    Returns:
        The position behind the map (``end + 1``: damaged), where ``out`` ends now, and how many pairs were kept.
    """
    kept = 0
    while True:
        count, position = read_count(buffer, position, end)
        if count == 0:
            return position, at, kept
        for _ in range(count):
            start = position
            key, position = read_long(buffer, position, end)
            value, position = read_long(buffer, position, end)
            value_at = position
            if meaning != COUNTS_MAP:
                if value < 0 or value > end - position:
                    return end + 1, at, kept
                position += value
            if position > end:
                return end + 1, at, kept
            after = _write_pair(
                buffer,
                start,
                value_at,
                position,
                key,
                meaning,
                lengths,
                texts,
                other_ids,
                other_lengths,
                scratch,
                out,
                at,
            )
            if after > at:
                at = after
                kept += 1


@njit(cache=True, nogil=True)
def _skip_longs(buffer: Bytes, position: int, end: int) -> int:
    while True:
        count, position = read_count(buffer, position, end)
        if count == 0:
            return position
        for _ in range(count):
            _, position = read_long(buffer, position, end)


@njit(cache=True, nogil=True)
def _inherit(numbers: Ints, manifest: Ints, state: Ints) -> bool:
    """Fills what an entry leaves to its manifest (snapshot id, sequence number, first row id); whether it is whole."""
    if numbers[SNAPSHOT_ID] == _ABSENT:
        numbers[SNAPSHOT_ID] = manifest[0]
    inherits = numbers[STATUS] == _ADDED or manifest[1] == 0
    for slot in (SEQUENCE_NUMBER, FILE_SEQUENCE_NUMBER):
        if numbers[slot] == _ABSENT and inherits:
            numbers[slot] = manifest[1]
    if manifest[2] < 0:
        numbers[FIRST_ROW_ID] = _ABSENT
    elif numbers[FIRST_ROW_ID] == _ABSENT and numbers[STATUS] != _DELETED:
        numbers[FIRST_ROW_ID] = state[0]
        state[0] += numbers[RECORD_COUNT]
    return bool(numbers[SEQUENCE_NUMBER] != _ABSENT)


@njit(cache=True, nogil=True)
def transcode(  # noqa: C901 - one branch a kind of field
    buffer: Bytes,
    records: int,
    source: Ints,
    target: Ints,
    manifest: Ints,
    state: Ints,
    lengths: Ints,
    texts: Ints,
    other_ids: Ints,
    other_lengths: Ints,
    scratch: Bytes,
    maps: Bytes,
    out: Bytes,
    first_row: int,
    offsets: Ints,
) -> int:
    """Turns one block's entries into new ones; DELETED ones are left out, as empty spans.

    Args:
        buffer: the block's decompressed bytes.
        records: entries in the block.
        source: the source program.
        target: the target program.
        manifest: what entries inherit: added snapshot id, sequence number, first row id (−1: none).
        state: one number, the next first row id to give.
        lengths: by field id below its length: what is left of bounds (``Kept.length``), or DROPPED.
        texts: by field id: 1 where bounds are text.
        other_ids: larger field ids that keep statistics.
        other_lengths: what is left of their bounds.
        scratch: room for one bound.
        maps: room for one entry's maps.
        out: the new entries, one behind another, appended where ``offsets[first_row]`` says.
        first_row: the row of the block's first entry.
        offsets: (rows + 1) where each entry begins in ``out``.

    Returns:
        How many of the buffer's bytes the entries take.

    Raises:
        ValueError: when the bytes are no entries of this schema, or lack a required value.
    """
    fields = len(source)
    starts = np.empty(fields, dtype=np.int64)
    stops = np.empty(fields, dtype=np.int64)
    pairs = np.zeros(fields, dtype=np.int64)
    numbers = np.empty(_SLOTS, dtype=np.int64)
    position, end = 0, len(buffer)
    for row in range(first_row, first_row + records):
        numbers[:] = _ABSENT
        maps_used = 0
        for index in range(fields):
            opcode, operand, null, meaning = source[index, 0], source[index, 1], source[index, 2], source[index, 3]
            starts[index] = -1
            if null >= 0:
                branch, position = read_long(buffer, position, end)
                if branch == null:
                    continue
            starts[index] = position
            if opcode == LONG:
                value, position = read_long(buffer, position, end)
                if meaning != PLAIN:
                    numbers[meaning] = value
            elif opcode in (SPAN, FIXED):
                length = operand
                if opcode == SPAN:
                    length, position = read_long(buffer, position, end)
                if length < 0 or length > end - position:
                    raise ValueError("a value is longer than its block")
                position += length
            elif opcode == LONGS:
                position = _skip_longs(buffer, position, end)
            else:
                starts[index] = maps_used
                position, maps_used, pairs[index] = _trim_map(
                    buffer,
                    position,
                    end,
                    meaning,
                    lengths,
                    texts,
                    other_ids,
                    other_lengths,
                    scratch,
                    maps,
                    maps_used,
                )
                stops[index] = maps_used
                if position > end:
                    raise ValueError("a block ends inside a map")
                continue
            if position > end:
                raise ValueError("a block ends inside an entry, or holds other values than its schema says")
            stops[index] = position
        whole = _inherit(numbers, manifest, state)
        at = offsets[row]
        if numbers[STATUS] == _DELETED:
            offsets[row + 1] = at
            continue
        if not whole:
            raise ValueError("an entry has no sequence number")
        for index in range(len(target)):
            action, field, null, constant = target[index, 0], target[index, 1], target[index, 2], target[index, 3]
            is_map = action == COPY and field >= 0 and source[field, 3] >= COUNTS_MAP
            if action == COPY:
                absent = field < 0 or starts[field] < 0 or (is_map and pairs[field] == 0)
            else:
                absent = action == INHERITED and numbers[field] == _ABSENT
            if absent and null < 0:
                raise ValueError("an entry lacks a required value")
            if null >= 0:
                at = _write_long(out, at, null if absent else 1 - null)
            if absent:
                continue
            if action == CONSTANT:
                at = _write_long(out, at, constant)
            elif action == INHERITED:
                at = _write_long(out, at, numbers[field])
            elif is_map:
                at = _write_long(out, at, pairs[field])
                at = _copy(maps, starts[field], stops[field], out, at)
                at = _write_long(out, at, 0)
            else:
                at = _copy(buffer, starts[field], stops[field], out, at)
        offsets[row + 1] = at
    return position
