"""Shortens bounds as Iceberg does (``UnicodeUtil``, ``BinaryUtil``): an upper one is rounded up, and stays a bound."""

from __future__ import annotations

from typing import Final

_HIGHEST_CODE_POINT: Final = 0x10FFFF
_SURROGATES: Final = range(0xD800, 0xE000)
"""No code points of text: what follows the last one before them is the first one behind them."""


def truncated_text(text: str, length: int, *, upper: bool) -> bytes | None:
    """A text bound of at most so many code points, in UTF-8.

    An upper bound is rounded up at its last code point that can be; where none can, there is no bound.
    """
    if len(text) <= length or not upper:
        return text[:length].encode()
    for position in range(length - 1, -1, -1):
        following = ord(text[position]) + 1
        if following in _SURROGATES:
            following = _SURROGATES.stop
        if following <= _HIGHEST_CODE_POINT:
            return (text[:position] + chr(following)).encode()
    return None


def truncated_bytes(raw: bytes, length: int, *, upper: bool) -> bytes | None:
    """A binary bound of at most so many bytes; an upper one is rounded up at its last byte that can be."""
    if len(raw) <= length or not upper:
        return raw[:length]
    for position in range(length - 1, -1, -1):
        if raw[position] < 0xFF:
            return raw[:position] + bytes([raw[position] + 1])
    return None
