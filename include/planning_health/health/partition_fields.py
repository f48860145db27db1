"""One partition field of one spec, seen over its entries' values and over its manifests' summaries.

Everything is read by the row's own spec and by position in it: specs differ, and so do the meanings of a position.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyiceberg.partitioning import PartitionSpec
from pyiceberg.transforms import Transform
from pyiceberg.types import IcebergType

from planning_health.health.columns import Floats, Ints, Mask, OrderedColumn, booleans, ordered
from planning_health.health.display import days_since_epoch, display, unit_of
from planning_health.metadata.model import TableInfo
from planning_health.metadata.single_values import decode
from planning_health.planning.transforms import result_type


@dataclass(frozen=True)
class FieldKey:
    """A partition field's identity and the type of its values."""

    spec_id: int
    position: int
    name: str
    source: str
    transform: Transform[Any, Any]
    value_type: IcebergType
    source_dropped: bool

    @property
    def scope_key(self) -> str:
        """The field in signals: ``<spec id>.<field name>``."""
        return f"{self.spec_id}.{self.name}"

    @property
    def unit(self) -> str | None:
        """The unit of a time transform's values; ``None`` for every other transform."""
        return unit_of(self.transform)

    def decode(self, raw: bytes | None) -> Any:
        """One raw value."""
        return decode(raw, self.value_type)

    def display(self, raw: bytes | None) -> str | None:
        """One raw value for people, ``None`` for none."""
        return display(self.transform, self.value_type, self.decode(raw))


def fields_of(info: TableInfo, spec: PartitionSpec) -> list[FieldKey]:
    """The spec's fields, each typed by its source column even when that has been dropped since."""
    current = info.schema.field_ids
    keys = []
    for position, field in enumerate(spec.fields):
        source = info.source_field(field.source_id)
        keys.append(
            FieldKey(
                spec_id=spec.spec_id,
                position=position,
                name=field.name,
                source=source.name if source else f"field id {field.source_id}",
                transform=field.transform,
                value_type=result_type(field.transform, source.field_type if source else None),
                source_dropped=field.source_id not in current,
            )
        )
    return keys


@dataclass(frozen=True)
class FieldValues:
    """The partition values of one field over entries, the distinct ones decoded once.

    Attributes:
        codes: for each entry the index of its value among the distinct ones, -1 for null.
        raw: the distinct raw values.
        distinct: the same, ordered.
    """

    codes: Ints
    raw: pa.Array
    distinct: OrderedColumn

    def used(self, entries: Mask) -> Ints:
        """Indexes of the distinct values that these entries have, null left out."""
        return np.setdiff1d(np.unique(self.codes[entries]), np.array([-1]))

    @property
    def by_value(self) -> Ints:
        """Codes that are equal for equal values, also where a promoted type left different encodings; -1 for null."""
        count = len(self.raw)
        canonical = np.arange(count, 2 * count)
        known = self.distinct.known
        canonical[known] = np.unique(self.distinct.keys[known], return_inverse=True)[1]
        return np.where(self.codes >= 0, np.append(canonical, -1)[self.codes], -1)


def partition_groups(values: list[FieldValues], entries: int) -> Ints:
    """Numbers the partitions of entries of one spec: the same number, the same partition."""
    groups: Ints = np.zeros(entries, dtype=np.int64)
    for field in values:
        codes = field.by_value + 1
        combined = groups * (int(codes.max(initial=0)) + 1) + codes
        groups = np.unique(combined, return_inverse=True)[1].astype(np.int64)
    return groups


def values_by_field(keys: list[FieldKey], partitions: pa.Array) -> list[FieldValues]:
    """The values of all fields of a spec, over the ``partition`` column of entries of that spec.

    An entry whose partition has another number of values than the spec has fields counts as null everywhere.
    """
    width = len(keys)
    fits = booleans(pc.equal(pc.list_value_length(partitions), width), absent=False)
    usable = np.flatnonzero(fits)
    flat = partitions.take(pa.array(usable)).flatten()
    found = []
    for key in keys:
        column = flat.take(pa.array(np.arange(key.position, len(flat), width)))
        encoded = column.dictionary_encode()
        codes = np.full(len(partitions), -1, dtype=np.int64)
        codes[usable] = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False)
        found.append(FieldValues(codes, encoded.dictionary, ordered(encoded.dictionary, key.value_type)))
    return found


@dataclass(frozen=True)
class FieldSummaries:
    """The summaries of one field over manifests of its spec.

    Attributes:
        ordinals: the manifests.
        present: the manifest has summaries, as many as the spec has fields.
        contains_null: some entry's value is null.
        contains_nan: some entry's value is NaN, or the writer did not say.
        lower: lower bounds.
        upper: upper bounds.
        raw_lower: the lower bounds as they are stored.
        raw_upper: the upper bounds as they are stored.
    """

    key: FieldKey
    ordinals: Ints
    present: Mask
    contains_null: Mask
    contains_nan: Mask
    lower: OrderedColumn
    upper: OrderedColumn
    raw_lower: pa.Array
    raw_upper: pa.Array

    @cached_property
    def bounded(self) -> Mask:
        """Both bounds are known."""
        return self.present & self.lower.known & self.upper.known

    @cached_property
    def inverted(self) -> Mask:
        """The lower bound lies above the upper one."""
        return self.bounded & np.asarray(self.lower.keys > self.upper.keys, dtype=np.bool_)

    @cached_property
    def unknown(self) -> Mask:
        """Nothing can be excluded: no summary, or a bound that does not decode."""
        undecodable = (~self.lower.absent & ~self.lower.known) | (~self.upper.absent & ~self.upper.known)
        return ~self.present | undecodable

    @cached_property
    def range(self) -> Floats:
        """Upper − lower in the time transform's unit; NaN for other transforms and where it is not known."""
        return self._difference(lambda keys: keys.astype(np.float64))

    @cached_property
    def range_days(self) -> Floats:
        """Upper − lower in days by the calendar; NaN as in :attr:`range`."""
        return self._difference(lambda keys: days_since_epoch(self.key.transform, keys))

    def _difference(self, scale: Any) -> Floats:
        result = np.full(len(self.ordinals), np.nan)
        if self.key.unit is not None:
            rows = np.flatnonzero(self.bounded & ~self.inverted)
            result[rows] = scale(self.upper.keys[rows]) - scale(self.lower.keys[rows])
        return result


def summaries_by_field(keys: list[FieldKey], ordinals: Ints, summaries: pa.Array) -> list[FieldSummaries]:
    """The summaries of all fields of a spec, over the ``partitions`` column of manifests of that spec."""
    width = len(keys)
    fits = booleans(pc.equal(pc.list_value_length(summaries), width), absent=False)
    flat = summaries.take(pa.array(np.flatnonzero(fits))).flatten()
    row_of = np.where(fits, np.cumsum(fits) - 1, -1)
    return [_field_summaries(key, ordinals, fits, flat, row_of, width) for key in keys]


def _field_summaries(
    key: FieldKey, ordinals: Ints, fits: Mask, flat: pa.Array, row_of: NDArray[np.int64], width: int
) -> FieldSummaries:
    rows = pa.array(row_of * width + key.position, mask=~fits)
    part = flat.take(rows)
    lower, upper = part.field("lower_bound"), part.field("upper_bound")
    return FieldSummaries(
        key=key,
        ordinals=ordinals,
        present=fits,
        contains_null=booleans(part.field("contains_null"), absent=False),
        contains_nan=booleans(part.field("contains_nan"), absent=True),
        lower=ordered(lower, key.value_type),
        upper=ordered(upper, key.value_type),
        raw_lower=lower,
        raw_upper=upper,
    )
