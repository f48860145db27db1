"""What a trim leaves of the statistics of an entry, column by column."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

WHOLE: Final = -1
"""Stands for bounds that are kept as they are."""

NO_BOUNDS: Final = 0

_HIGHEST_CODE_POINT: Final = 0x10FFFF
_SURROGATES: Final = range(0xD800, 0xE000)


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
        return shortened_text(raw, self.length, upper=upper) if self.text else _shortened(raw, self.length, upper=upper)


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


def shortened_text(raw: bytes, length: int, *, upper: bool) -> bytes | None:
    """A text bound of at most so many code points.

    An upper bound is rounded up at the last code point that can be, so that it stays one. There is no bound where none
    can, and none where the bytes are not UTF-8: Iceberg could not read it.
    """
    try:
        text = raw.decode()
    except UnicodeDecodeError:
        return None
    if len(text) <= length:
        return raw
    return _rounded_up(text[:length]) if upper else text[:length].encode()


def _rounded_up(text: str) -> bytes | None:
    for position in range(len(text) - 1, -1, -1):
        following = ord(text[position]) + 1
        if following in _SURROGATES:
            following = _SURROGATES.stop
        if following <= _HIGHEST_CODE_POINT:
            return (text[:position] + chr(following)).encode()
    return None


def _shortened(raw: bytes, length: int, *, upper: bool) -> bytes | None:
    if not upper:
        return raw[:length]
    for position in range(length - 1, -1, -1):
        if raw[position] < 0xFF:
            return raw[:position] + bytes([raw[position] + 1])
    return None
