"""Keeps secrets out of every message: the values that were read, and what looks like one in an address."""

from __future__ import annotations

import re
from typing import Final

MASK: Final = "***"
_SHORTEST: Final = 4
"""Shorter values are not masked: they would blot out ordinary words."""

_USER_INFO: Final = re.compile(r"://[^/@\s]+@")
_QUERY_SECRET: Final = re.compile(
    r"([?&](?:[\w.-]*(?:token|sig|signature|secret|password|key|credential))=)[^&\s'\")]+", re.I
)

_secrets: set[str] = set()


def remember_secret(value: str) -> None:
    """Masks a secret's value in every later message of this process, also without the white space around it."""
    _secrets.update(part for part in (value, value.strip(), repr(value)[1:-1]) if len(part) >= _SHORTEST)


def redact(text: str) -> str:
    """The text without any secret that is known or can be recognised."""
    for secret in sorted(_secrets, key=len, reverse=True):
        text = text.replace(secret, MASK)
    return _QUERY_SECRET.sub(rf"\1{MASK}", _USER_INFO.sub(f"://{MASK}@", text))


def first_line(error: BaseException | str) -> str:
    """The first line of a message, or of an exception's, without secrets and of a readable length."""
    return redact((str(error).splitlines() or [""])[0])[:300]
