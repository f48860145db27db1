"""Columns of single values (bounds, partition values) in a form that compares as Iceberg Java does.

A column of raw single-value bytes becomes order-preserving keys: 64-bit integers for numbers, dates, times and
short decimals (floating-point numbers by their total order: -0.0 before 0.0, NaN last), byte strings for
strings, binary and UUIDs (signed halves, as ``java.util.UUID``), Python integers for long decimals. Comparing
a whole column with a literal is then one vectorised operation. Bytes that do not decode are unknown (null).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from decimal import Decimal
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyiceberg.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    IntegerType,
    LongType,
    StringType,
    TimestampNanoType,
    TimestampType,
    TimestamptzNanoType,
    TimestamptzType,
    TimeType,
    UUIDType,
)

from planning_health.planning.literals import LONG_MAX, LONG_MIN, Literal, unscaled_of

if TYPE_CHECKING:
    from pyiceberg.types import IcebergType

Mask = NDArray[np.bool_]
Ints = NDArray[np.int64]

_FOUR_BYTE_TYPES = (IntegerType, DateType)
_EIGHT_BYTE_TYPES = (
    LongType,
    TimeType,
    TimestampType,
    TimestamptzType,
    TimestampNanoType,
    TimestamptzNanoType,
)
_NAN_KEY = int(np.array(np.nan, dtype=np.float64).view(np.int64))


class Comparable(ABC):
    """A column of values of one type; where ``valid`` is false the value is null or unknown.

    Comparison masks are false where the value is not valid; callers decide what null means.
    """

    valid: Mask

    @abstractmethod
    def lt(self, lit: Literal) -> Mask:
        """Value < literal."""

    @abstractmethod
    def le(self, lit: Literal) -> Mask:
        """Value ≤ literal."""

    @abstractmethod
    def eq(self, lit: Literal) -> Mask:
        """Value = literal by order (so 1.0 equals 1.00)."""

    @abstractmethod
    def same(self, other: Comparable) -> Mask:
        """Value equals the other column's value in the same row, both valid."""

    @abstractmethod
    def gt_column(self, other: Comparable) -> Mask:
        """Value > the other column's value in the same row, both valid."""

    @abstractmethod
    def take(self, rows: Ints | slice) -> Comparable:
        """Select rows; a slice of them is not copied."""

    def identical(self, lit: Literal) -> Mask:
        """Value equals the literal as Java's ``equals`` says (a decimal's scale counts)."""
        return self.eq(lit)

    def is_in(self, literals: Iterable[Literal]) -> Mask:
        """Value is one of a set, as Java's ``Set.contains`` says."""
        result = np.zeros(len(self.valid), dtype=np.bool_)
        for lit in literals:
            result |= self.identical(lit)
        return result

    def starts_with(self, prefix: str) -> Mask:
        """Value is text that starts with the prefix."""
        raise TypeError(f"only text has prefixes, not {type(self).__name__} ({prefix!r})")

    @cached_property
    def nan(self) -> Mask:
        """Value is NaN."""
        return np.zeros(len(self.valid), dtype=np.bool_)


class IntKeys(Comparable):
    """Values whose order is that of 64-bit integers."""

    def __init__(
        self, keys: Ints, valid: Mask, key_of: Callable[[Literal], tuple[int, bool]], scale: int | None = None
    ) -> None:
        self.keys = keys
        self.valid = valid
        self._key_of = key_of
        self._scale = scale

    def lt(self, lit: Literal) -> Mask:  # noqa: D102
        floor, exact = self._key_of(lit)
        return self._below(floor, inclusive=not exact)

    def le(self, lit: Literal) -> Mask:  # noqa: D102
        return self._below(self._key_of(lit)[0], inclusive=True)

    def eq(self, lit: Literal) -> Mask:  # noqa: D102
        floor, exact = self._key_of(lit)
        if not exact or not LONG_MIN <= floor <= LONG_MAX:
            return np.zeros(len(self.valid), dtype=np.bool_)
        return _bools(self.keys == floor) & self.valid

    def identical(self, lit: Literal) -> Mask:  # noqa: D102
        if self._scale is not None and unscaled_of(lit.value)[1] != self._scale:
            return np.zeros(len(self.valid), dtype=np.bool_)
        return self.eq(lit)

    def _below(self, bound: int, *, inclusive: bool) -> Mask:
        if bound > LONG_MAX:
            return self.valid.copy()
        if bound < LONG_MIN:
            return np.zeros(len(self.valid), dtype=np.bool_)
        return ((self.keys <= bound) if inclusive else (self.keys < bound)) & self.valid

    def same(self, other: Comparable) -> Mask:  # noqa: D102
        assert isinstance(other, IntKeys | WideKeys)  # noqa: S101 - one type, one representation
        return _bools(self.keys == other.keys) & self.valid & other.valid

    def gt_column(self, other: Comparable) -> Mask:  # noqa: D102
        assert isinstance(other, IntKeys | WideKeys)  # noqa: S101 - one type, one representation
        return _bools(self.keys > other.keys) & self.valid & other.valid

    def take(self, rows: Ints | slice) -> IntKeys:  # noqa: D102
        return IntKeys(self.keys[rows], self.valid[rows], self._key_of, self._scale)


class FloatKeys(IntKeys):
    """Floating-point numbers by their total order."""

    @cached_property
    def nan(self) -> Mask:  # noqa: D102
        return _bools(self.keys == _NAN_KEY) & self.valid

    def take(self, rows: Ints | slice) -> FloatKeys:  # noqa: D102
        return FloatKeys(self.keys[rows], self.valid[rows], self._key_of)


class WideKeys(Comparable):
    """Decimals beyond 64 bits, as Python integers (rare, and slower)."""

    def __init__(self, keys: NDArray[np.object_], valid: Mask, scale: int) -> None:
        self.keys = keys
        self.valid = valid
        self._scale = scale

    def lt(self, lit: Literal) -> Mask:  # noqa: D102
        floor, exact = _decimal_key(lit.value, self._scale)
        below = (self.keys < floor) if exact else (self.keys <= floor)
        return _bools(below) & self.valid

    def le(self, lit: Literal) -> Mask:  # noqa: D102
        return _bools(self.keys <= _decimal_key(lit.value, self._scale)[0]) & self.valid

    def eq(self, lit: Literal) -> Mask:  # noqa: D102
        floor, exact = _decimal_key(lit.value, self._scale)
        return _bools(self.keys == floor) & self.valid & exact

    def identical(self, lit: Literal) -> Mask:  # noqa: D102
        return self.eq(lit) & (unscaled_of(lit.value)[1] == self._scale)

    same = IntKeys.same
    gt_column = IntKeys.gt_column

    def take(self, rows: Ints | slice) -> WideKeys:  # noqa: D102
        return WideKeys(self.keys[rows], self.valid[rows], self._scale)


class BytesKeys(Comparable):
    """Values whose order is that of their unsigned bytes."""

    def __init__(self, keys: pa.Array, key_of: Callable[[Any], bytes]) -> None:
        self.keys = keys
        self.valid = _mask(keys.is_valid())
        self._key_of = key_of

    def _scalar(self, lit: Literal) -> pa.Scalar:
        return pa.scalar(self._key_of(lit.value), type=self.keys.type)

    def lt(self, lit: Literal) -> Mask:  # noqa: D102
        return _mask(pc.less(self.keys, self._scalar(lit)))

    def le(self, lit: Literal) -> Mask:  # noqa: D102
        return _mask(pc.less_equal(self.keys, self._scalar(lit)))

    def eq(self, lit: Literal) -> Mask:  # noqa: D102
        return _mask(pc.equal(self.keys, self._scalar(lit)))

    def is_in(self, literals: Iterable[Literal]) -> Mask:  # noqa: D102
        wanted = pa.array([self._key_of(lit.value) for lit in literals], type=self.keys.type)
        return _mask(pc.is_in(self.keys, value_set=wanted)) & self.valid

    def same(self, other: Comparable) -> Mask:  # noqa: D102
        assert isinstance(other, BytesKeys)  # noqa: S101 - one type, one representation
        return _mask(pc.equal(self.keys, other.keys))

    def gt_column(self, other: Comparable) -> Mask:  # noqa: D102
        assert isinstance(other, BytesKeys)  # noqa: S101 - one type, one representation
        return _mask(pc.greater(self.keys, other.keys))

    def starts_with(self, prefix: str) -> Mask:  # noqa: D102
        return _mask(pc.starts_with(self.keys, pattern=prefix.encode()))

    def take(self, rows: Ints | slice) -> BytesKeys:  # noqa: D102
        keys = self.keys[rows] if isinstance(rows, slice) else self.keys.take(pa.array(rows))
        return BytesKeys(keys, self._key_of)


def _bools(values: Any) -> Mask:
    return np.asarray(values, dtype=np.bool_)


def _mask(values: Any) -> Mask:
    return _bools(values.fill_null(False).to_numpy(zero_copy_only=False))


def comparable(raw: pa.Array | pa.ChunkedArray, value_type: IcebergType) -> Comparable:
    """Decode a column of raw single values into comparable keys.

    Args:
        raw: binary values, null where there is none.
        value_type: the primitive type of the field *now*: a shorter encoding of a type promoted since
            (int to long, float to double) is decoded by its length.
    """
    column = _flat(raw)
    if isinstance(value_type, StringType):
        return BytesKeys(_valid_text(column), str.encode)
    if isinstance(value_type, BinaryType | FixedType):
        return BytesKeys(column, bytes)
    if isinstance(value_type, UUIDType):
        return BytesKeys(_uuid_keys(column), lambda value: _uuid_key(value.bytes))
    if isinstance(value_type, DecimalType):
        return _decimals(column, value_type.scale)
    if isinstance(value_type, FloatType | DoubleType):
        return _floats(column, value_type)
    return _whole_numbers(column, value_type)


def present(raw: pa.Array) -> Mask:
    """Where a raw value is there, decodable or not."""
    return np.asarray(raw.is_valid().to_numpy(zero_copy_only=False), dtype=np.bool_)


def _flat(raw: pa.Array | pa.ChunkedArray) -> pa.Array:
    array = raw.combine_chunks() if isinstance(raw, pa.ChunkedArray) else raw
    if isinstance(array, pa.ChunkedArray):
        array = pa.concat_arrays(array.chunks) if array.num_chunks else pa.array([], type=array.type)
    if pa.types.is_fixed_size_binary(array.type) or pa.types.is_string(array.type):
        return array.cast(pa.binary())
    return array if pa.types.is_binary(array.type) else array.cast(pa.large_binary())


def _layout(column: pa.Array) -> tuple[NDArray[np.uint8], Ints, Ints, Mask]:
    """Return (data bytes, start of each value, length of each value, valid mask)."""
    offset_type = np.int64 if pa.types.is_large_binary(column.type) else np.int32
    _, offsets_buffer, data_buffer = column.buffers()
    valid = _mask(column.is_valid())
    if offsets_buffer is None or len(column) == 0:
        empty = np.zeros(len(column), dtype=np.int64)
        return np.zeros(0, dtype=np.uint8), empty, empty, valid
    offsets = np.frombuffer(offsets_buffer, dtype=offset_type)[column.offset : column.offset + len(column) + 1]
    starts = offsets[:-1].astype(np.int64)
    lengths = np.diff(offsets).astype(np.int64)
    data = np.frombuffer(data_buffer, dtype=np.uint8) if data_buffer is not None else np.zeros(0, np.uint8)
    return data, starts, lengths, valid


def _gather(data: NDArray[np.uint8], starts: Ints, width: int) -> NDArray[np.uint8]:
    """Return the ``width`` bytes at each start, one row a value."""
    rows: NDArray[np.uint8] = data[starts[:, None] + np.arange(width)]
    return rows


def _fixed_width(column: pa.Array, dtypes: dict[int, str]) -> tuple[NDArray[Any], Mask]:
    """Read numbers whose dtype follows from their length; other lengths are not valid."""
    data, starts, lengths, valid = _layout(column)
    widest = dtypes[max(dtypes)]
    values = np.zeros(len(column), dtype=widest[1:])
    known = np.zeros(len(column), dtype=np.bool_)
    for width, dtype in dtypes.items():
        rows = np.flatnonzero(valid & (lengths == width))
        if len(rows):
            values[rows] = _gather(data, starts[rows], width).view(dtype).reshape(-1)
            known[rows] = True
    return values, known


def _whole_numbers(column: pa.Array, value_type: IcebergType) -> IntKeys:
    if isinstance(value_type, BooleanType):
        values, valid = _fixed_width(column, {1: "<u1"})
        return IntKeys((values != 0).astype(np.int64), valid, lambda lit: (int(lit.value), True))
    if isinstance(value_type, _FOUR_BYTE_TYPES):
        widths = {4: "<i4"}
    elif isinstance(value_type, _EIGHT_BYTE_TYPES):
        widths = {8: "<i8", 4: "<i4"}
    else:  # no order is known for it: every value is unknown
        widths = {0: "<i8"}
        column = pa.nulls(len(column), pa.binary())
    values, valid = _fixed_width(column, widths)
    return IntKeys(values.astype(np.int64), valid, lambda lit: (int(lit.value), True))


def _floats(column: pa.Array, value_type: IcebergType) -> FloatKeys:
    widths = {4: "<f4"} if isinstance(value_type, FloatType) else {8: "<f8", 4: "<f4"}
    values, valid = _fixed_width(column, widths)
    return FloatKeys(float_keys(values.astype(np.float64)), valid, _float_key)


def float_keys(values: NDArray[np.float64]) -> Ints:
    """Map floating-point numbers to integers in the order of ``Double.compare``."""
    canonical = np.where(np.isnan(values), np.nan, values)
    bits = canonical.view(np.int64)
    keys: Ints = bits ^ ((bits >> 63) & np.int64(LONG_MAX))
    return keys


def _float_key(lit: Literal) -> tuple[int, bool]:
    return int(float_keys(np.array([lit.value], dtype=np.float64))[0]), True


def _decimal_key(value: Decimal, scale: int) -> tuple[int, bool]:
    """Return the literal at the column's scale, rounded down, and whether that is exact."""
    unscaled, literal_scale = unscaled_of(value)
    if literal_scale <= scale:
        return unscaled * 10 ** (scale - literal_scale), True
    floor, rest = divmod(unscaled, 10 ** (literal_scale - scale))
    return floor, rest == 0


def _decimals(column: pa.Array, scale: int) -> Comparable:
    data, starts, lengths, valid = _layout(column)
    valid = valid & (lengths > 0)
    if lengths[valid].max(initial=0) > 8:
        return _wide_decimals(column, valid, scale)
    keys = np.zeros(len(column), dtype=np.int64)
    for width in np.unique(lengths[valid]):
        rows = np.flatnonzero(valid & (lengths == width))
        raw = _gather(data, starts[rows], int(width))
        padded = np.where(raw[:, :1] >= 0x80, np.uint8(0xFF), np.uint8(0)).repeat(8, axis=1)
        padded[:, 8 - int(width) :] = raw
        keys[rows] = np.ascontiguousarray(padded).view(">i8").reshape(-1)
    return IntKeys(keys, valid, lambda lit: _decimal_key(lit.value, scale), scale)


def _wide_decimals(column: pa.Array, valid: Mask, scale: int) -> WideKeys:
    keys = np.zeros(len(column), dtype=object)
    for row in np.flatnonzero(valid):
        keys[row] = int.from_bytes(column[int(row)].as_py(), "big", signed=True)
    return WideKeys(keys, valid, scale)


def _valid_text(column: pa.Array) -> pa.Array:
    try:
        column.cast(pa.large_string() if pa.types.is_large_binary(column.type) else pa.string())
    except pa.ArrowInvalid:
        return pa.array([_text_or_none(value) for value in column.to_pylist()], type=column.type)
    return column


def _text_or_none(value: bytes | None) -> bytes | None:
    try:
        return value if value is None or value.decode() is not None else None
    except UnicodeDecodeError:
        return None


def _uuid_key(raw: bytes) -> bytes:
    return bytes((raw[0] ^ 0x80, *raw[1:8], raw[8] ^ 0x80, *raw[9:]))


def _uuid_keys(column: pa.Array) -> pa.Array:
    values = column.to_pylist()
    return pa.array([_uuid_key(v) if v is not None and len(v) == 16 else None for v in values], type=pa.binary())
