"""What somebody meant by a name that is not there."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


def did_you_mean(unknown: str, known: Iterable[str]) -> str:
    """The end of a sentence that says a name is unknown: the closest known name, in any case, else a full stop."""
    by_lower = {name.lower(): name for name in known}
    near = get_close_matches(unknown.lower(), by_lower, n=1)
    return f", did you mean {by_lower[near[0]]!r}?" if near else "."


def some_of(names: Iterable[str], most: int = 10) -> str:
    """The first of many names, and how many more there are; "none" without any."""
    listed = list(names)
    more = f", … and {len(listed) - most:,} more" if len(listed) > most else ""
    return f"{', '.join(listed[:most])}{more}" or "none"
