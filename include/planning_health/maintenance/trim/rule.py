"""What a trim leaves of the statistics of an entry, column by column."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from planning_health.metadata.truncation import truncated_bytes, truncated_text

WHOLE: Final = -1
"""Stands for bounds that are kept as they are."""

NO_BOUNDS: Final = 0


@dataclass(frozen=True, slots=True)
class Kept:
    """What is left of one column's statistics.

    Attributes:
        length: characters (or bytes) that are left of a bound; ``WHOLE``, or ``NO_BOUNDS``. All counts are kept.
        text: whether bounds are UTF-8; else they are cut between any two bytes.
    """

    length: int
    text: bool = False

    def bound(self, raw: bytes, *, upper: bool) -> bytes | None:
        """A bound as Iceberg would have written it with this length; ``None`` where there is none."""
        if self.length == NO_BOUNDS:
            return None
        if self.length == WHOLE or len(raw) <= self.length:
            return raw
        return (_shortened_text if self.text else truncated_bytes)(raw, self.length, upper=upper)


@dataclass(frozen=True)
class TrimRule:
    """The columns that keep statistics; all others lose theirs."""

    columns: Mapping[int, Kept]

    def keep(self, statistic: str, field_id: int, value: Any) -> Any:
        """What is left of one statistic of one column; ``None``: nothing."""
        kept = self.columns.get(field_id)
        if kept is None or not statistic.endswith("bound"):
            return None if kept is None else value
        return kept.bound(value, upper=statistic == "upper_bound")

    def with_bounds(self) -> Iterable[int]:
        """The columns that keep bounds."""
        return (field_id for field_id, kept in self.columns.items() if kept.length != NO_BOUNDS)


def _shortened_text(raw: bytes, length: int, *, upper: bool) -> bytes | None:
    """There is no bound where the bytes are not UTF-8: Iceberg could not read it."""
    try:
        text = raw.decode()
    except UnicodeDecodeError:
        return None
    return truncated_text(text, length, upper=upper)
