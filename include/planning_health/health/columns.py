"""NumPy views of recorded columns, and raw single values in an order-preserving form."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyiceberg.types import IcebergType

from planning_health.planning.comparable import BytesKeys, IntKeys, WideKeys, comparable

Mask = NDArray[np.bool_]
Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


def integers(table: pa.Table, name: str, *, absent: int = 0) -> Ints:
    """A whole-number column; ``absent`` stands where the value is null."""
    column = table[name].combine_chunks().fill_null(absent)
    return np.asarray(column.to_numpy(zero_copy_only=False), dtype=np.int64)


def present(table: pa.Table, name: str) -> Mask:
    """Where a column has a value."""
    return np.asarray(table[name].combine_chunks().is_valid().to_numpy(zero_copy_only=False), dtype=np.bool_)


def booleans(column: pa.Array, *, absent: bool) -> Mask:
    """A Boolean column; ``absent`` stands where the value is null."""
    return np.asarray(column.fill_null(absent).to_numpy(zero_copy_only=False), dtype=np.bool_)


@dataclass(frozen=True)
class OrderedColumn:
    """Raw single values as keys that sort as Iceberg sorts the values.

    Attributes:
        keys: 64-bit integers, Python integers or bytes; meaningless where ``known`` is false.
        known: a value is there and decodes as its type.
        absent: there is no value.
        nan: the value is NaN (which sorts last).
    """

    keys: NDArray[Any]
    known: Mask
    absent: Mask
    nan: Mask

    def take(self, rows: Ints) -> OrderedColumn:
        """Some of the rows."""
        return OrderedColumn(self.keys[rows], self.known[rows], self.absent[rows], self.nan[rows])


def ordered(raw: pa.Array, value_type: IcebergType) -> OrderedColumn:
    """Decodes raw single values by type; see :mod:`planning_health.planning.comparable` for the order."""
    column = comparable(raw, value_type)
    keys: NDArray[Any]
    if isinstance(column, BytesKeys):
        keys = np.empty(len(column.valid), dtype=object)
        keys[:] = [key or b"" for key in column.keys.to_pylist()]
    else:
        assert isinstance(column, IntKeys | WideKeys)  # noqa: S101 - the only other forms
        keys = column.keys
    absent = np.asarray(raw.is_null().to_numpy(zero_copy_only=False), dtype=np.bool_)
    return OrderedColumn(keys, column.valid, absent, column.nan)
