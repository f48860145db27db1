"""Data files and delete files as JSON, as Iceberg's ``ContentFileParser`` and ``SingleValueParser`` write them."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from pyiceberg.types import (
    BinaryType,
    DateType,
    DecimalType,
    FixedType,
    IcebergType,
    TimestampNanoType,
    TimestampType,
    TimestamptzNanoType,
    TimestamptzType,
    TimeType,
    UUIDType,
)

from planning_health.metadata.single_values import decode

CONTENTS: Final = ("data", "position-deletes", "equality-deletes")

PartitionTypes = Mapping[int, Sequence[IcebergType | None]]
"""Spec id → the result type of each of its fields; ``None`` where the source column is in no known schema."""

_COUNTS: Final = (
    ("value-counts", "value_count"),
    ("null-value-counts", "null_value_count"),
    ("nan-value-counts", "nan_value_count"),
)
_BOUNDS: Final = (("lower-bounds", "lower_bound"), ("upper-bounds", "upper_bound"))
_OPTIONAL: Final = (
    ("split-offsets", "split_offsets"),
    ("equality-ids", "equality_ids"),
    ("sort-order-id", "sort_order_id"),
    ("first-row-id", "first_row_id"),
    ("referenced-data-file", "referenced_data_file"),
    ("content-offset", "content_offset"),
    ("content-size-in-bytes", "content_size_in_bytes"),
)


def content_file(row: Mapping[str, Any], types: PartitionTypes, stats: Iterable[int] = ()) -> dict[str, Any]:
    """One file.

    Args:
        row: columns of ``files_schema``.
        types: the partition types of all specs.
        stats: field ids whose counts and bounds are sent, in the order in which they are sent. Column sizes are
            not recorded, and not sent.
    """
    spec_id = row["spec_id"]
    return {
        "spec-id": spec_id,
        "content": CONTENTS[row["content"]],
        "file-path": row["file_path"],
        "file-format": row["file_format"].lower(),
        "partition": [
            single_value(raw, field_type) for raw, field_type in zip(row["partition"], types[spec_id], strict=True)
        ],
        "file-size-in-bytes": row["file_size_in_bytes"],
        "record-count": row["record_count"],
        **_metrics(row, stats),
        **{name: row[column] for name, column in _OPTIONAL if row.get(column) is not None},
    }


def _metrics(row: Mapping[str, Any], stats: Iterable[int]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, column in (*_COUNTS, *_BOUNDS):
        values = {field_id: row.get(f"{column}.{field_id}") for field_id in stats}
        known = {field_id: value for field_id, value in values.items() if value is not None}
        if known:
            written = [value.hex().upper() if isinstance(value, bytes) else value for value in known.values()]
            found[name] = {"keys": list(known), "values": written}
    return found


def single_value(raw: bytes | None, field_type: IcebergType | None) -> Any:
    """A raw partition value as a value for JSON; null where it is null, or of a type that is not known any more."""
    if field_type is None:
        return None
    value = decode(raw, field_type)
    if value is None:
        return None
    writer = _WRITERS.get(type(field_type))
    return writer(value) if writer else _number_or_text(value)


def _number_or_text(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):  # as Java's JSON library writes them
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return value


def _iso_date(days: int) -> str:
    """Days since 1970 as Java writes them: also years that Python's dates do not reach."""
    cycles, day_of_cycle = divmod(days + 719_468, 146_097)
    year_of_cycle = (day_of_cycle - day_of_cycle // 1460 + day_of_cycle // 36_524 - day_of_cycle // 146_096) // 365
    day_of_year = day_of_cycle - (365 * year_of_cycle + year_of_cycle // 4 - year_of_cycle // 100)
    shifted = (5 * day_of_year + 2) // 153
    month = shifted + 3 if shifted < 10 else shifted - 9
    year = cycles * 400 + year_of_cycle + (month <= 2)
    sign = "+" if year > 9999 else "-" if year < 0 else ""
    return f"{sign}{abs(year):04d}-{month:02d}-{day_of_year - (153 * shifted + 2) // 5 + 1:02d}"


def _iso_time(units: int, per_second: int) -> str:
    """A time of day; the fraction has as many digits as it needs, as in Java's ISO formats."""
    seconds, fraction = divmod(units, per_second)
    text = (dt.datetime.min + dt.timedelta(seconds=seconds)).time().isoformat()
    return text if not fraction else f"{text}.{fraction:0{len(str(per_second)) - 1}d}".rstrip("0")


def _iso_timestamp(units: int, per_second: int, zone: str) -> str:
    days, rest = divmod(units, 86_400 * per_second)
    return f"{_iso_date(days)}T{_iso_time(rest, per_second)}{zone}"


_MICROS: Final = 1_000_000
_NANOS: Final = 1_000_000_000
_UTC: Final = "+00:00"

_WRITERS: Final[dict[type[IcebergType], Callable[[Any], Any]]] = {
    DateType: _iso_date,
    TimeType: lambda micros: _iso_time(micros, _MICROS),
    TimestampType: lambda micros: _iso_timestamp(micros, _MICROS, ""),
    TimestamptzType: lambda micros: _iso_timestamp(micros, _MICROS, _UTC),
    TimestampNanoType: lambda nanos: _iso_timestamp(nanos, _NANOS, ""),
    TimestamptzNanoType: lambda nanos: _iso_timestamp(nanos, _NANOS, _UTC),
    DecimalType: lambda value: format(value, "f"),
    UUIDType: str,
    FixedType: lambda raw: raw.hex().upper(),
    BinaryType: lambda raw: raw.hex().upper(),
}
