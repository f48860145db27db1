"""Single-value serialization (Iceberg specification, appendix D): raw bounds to values, by type and by length.

The length decides where a type was promoted: a 4-byte bound of a ``long`` column was written as ``int``. What cannot be
decoded is unknown (``None``), never an error: other writers leave such bounds behind.
"""

from __future__ import annotations

import decimal
import struct
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    IcebergType,
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

_MICROS_PER_DAY: Final = 86_400_000_000
_NANOS_PER_DAY: Final = 1000 * _MICROS_PER_DAY


def decode(raw: bytes | None, field_type: IcebergType) -> Any:
    """Decodes one raw value to PyIceberg's internal form.

    Dates are days, times and timestamps micros (or nanos) as ``int``; decimals ``Decimal``; UUIDs ``UUID``.

    Returns:
        The value, or ``None`` when ``raw`` is absent or cannot be decoded as this type.
    """
    if raw is None:
        return None
    decoder = _decoder(field_type)
    try:
        return decoder(raw) if decoder else None
    except (struct.error, UnicodeDecodeError, ValueError, decimal.InvalidOperation):
        return None


def _decoder(field_type: IcebergType) -> Callable[[bytes], Any] | None:
    simple = _DECODERS.get(type(field_type))
    if simple is not None:
        return simple
    if isinstance(field_type, DecimalType):
        return lambda raw: _decimal(raw, field_type.scale)
    if isinstance(field_type, FixedType):
        return lambda raw: raw
    return None


_WIDE: Final = decimal.Context(prec=80)


def _decimal(raw: bytes, scale: int) -> decimal.Decimal:
    if not raw:
        raise ValueError("a number has at least one byte")
    return decimal.Decimal(int.from_bytes(raw, "big", signed=True)).scaleb(-scale, _WIDE)


def _int(raw: bytes) -> int:
    (value,) = struct.unpack("<i", raw)
    return int(value)


def _long(raw: bytes) -> int:
    (value,) = struct.unpack("<i" if len(raw) == 4 else "<q", raw)
    return int(value)


def _float(raw: bytes) -> float:
    (value,) = struct.unpack("<f", raw)
    return float(value)


def _double(raw: bytes) -> float:
    (value,) = struct.unpack("<f" if len(raw) == 4 else "<d", raw)
    return float(value)


def _timestamp(raw: bytes) -> int:
    if len(raw) == 4:  # promoted from date
        return _int(raw) * _MICROS_PER_DAY
    return _long(raw)


def _timestamp_nanos(raw: bytes) -> int:
    if len(raw) == 4:
        return _int(raw) * _NANOS_PER_DAY
    return _long(raw)


def _boolean(raw: bytes) -> bool:
    (value,) = struct.unpack("<?", raw)
    return bool(value)


_DECODERS: Final[dict[type[IcebergType], Callable[[bytes], Any]]] = {
    BooleanType: _boolean,
    IntegerType: _int,
    DateType: _int,
    LongType: _long,
    TimeType: _long,
    TimestampType: _timestamp,
    TimestamptzType: _timestamp,
    TimestampNanoType: _timestamp_nanos,
    TimestamptzNanoType: _timestamp_nanos,
    FloatType: _float,
    DoubleType: _double,
    StringType: lambda raw: raw.decode("utf-8"),
    BinaryType: lambda raw: raw,
    UUIDType: lambda raw: uuid.UUID(bytes=raw),
}


def decode_array(
    raw: pa.Array | pa.ChunkedArray, field_type: IcebergType
) -> tuple[npt.NDArray[Any], npt.NDArray[np.bool_]]:
    """Decodes a binary column.

    Args:
        raw: n raw values, null where absent.
        field_type: the column's type in the schema that the scan is bound to.

    Returns:
        n values (a native NumPy type for numbers, dates, times and booleans; objects otherwise) and n flags that are
        true where the value is known. Values at unknown places mean nothing.
    """
    array = raw.combine_chunks() if isinstance(raw, pa.ChunkedArray) else raw
    if isinstance(array, pa.ChunkedArray):  # combine_chunks of no chunk at all
        array = pa.array([], pa.binary())
    widths = _fixed_widths(field_type)
    if widths is None:
        values = np.empty(len(array), dtype=object)
        values[:] = [decode(item, field_type) for item in array.to_pylist()]
        return values, np.array([value is not None for value in values], dtype=bool)
    return _decode_fixed(array, widths)


@dataclass(frozen=True, slots=True)
class _Layout:
    """How numbers of one byte length are stored: their NumPy type, and how many of the column's units one is."""

    dtype: str
    units: int = 1


def _fixed_widths(field_type: IcebergType) -> dict[int, _Layout] | None:
    """The layouts by byte length; the first one's type is the result's."""
    if isinstance(field_type, IntegerType | DateType):
        return {4: _Layout("<i4")}
    if isinstance(field_type, LongType | TimeType):
        return {8: _Layout("<i8"), 4: _Layout("<i4")}
    if isinstance(field_type, FloatType):
        return {4: _Layout("<f4")}
    if isinstance(field_type, DoubleType):
        return {8: _Layout("<f8"), 4: _Layout("<f4")}
    if isinstance(field_type, BooleanType):
        return {1: _Layout("|u1")}
    if isinstance(field_type, TimestampType | TimestamptzType):
        return {8: _Layout("<i8"), 4: _Layout("<i4", _MICROS_PER_DAY)}
    if isinstance(field_type, TimestampNanoType | TimestamptzNanoType):
        return {8: _Layout("<i8"), 4: _Layout("<i4", _NANOS_PER_DAY)}
    return None


def _decode_fixed(array: pa.Array, widths: dict[int, _Layout]) -> tuple[npt.NDArray[Any], npt.NDArray[np.bool_]]:
    lengths = np.asarray(pc.fill_null(pc.binary_length(array), -1), dtype=np.int64)
    values = np.zeros(len(array), dtype=next(iter(widths.values())).dtype)
    known = np.zeros(len(array), dtype=bool)
    for width, layout in widths.items():
        chosen = lengths == width
        if chosen.any():
            joined = b"".join(array.filter(pa.array(chosen)).to_pylist())
            values[chosen] = np.frombuffer(joined, dtype=layout.dtype).astype(values.dtype) * layout.units
            known |= chosen
    return values, known
