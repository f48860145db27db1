"""How numbers, times and names are written for people, in reports, pages and messages alike."""

from __future__ import annotations

import hashlib
import math
import re
import unicodedata
from datetime import UTC, datetime, timedelta
from typing import Final

NOT_MEASURED: Final = "not measured"
_BYTE_STEPS: Final = ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "KB"))
_FIRST_WORD: Final = re.compile(r"[a-z]+(?=[ ,:;]|$)")
_FILE_ID: Final = re.compile(r"\b([0-9a-f]{8})-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_STATE_NAMES: Final = {"not_measured": "not measured", "no_op": "nothing to do", "verification_failed": "check failed"}


def visible(text: object) -> str:
    r"""Text on one line whose control and direction-changing characters are shown as escapes (``\u202e``).

    Names come from other people's tables: they must not be able to turn or hide what stands beside them.
    """
    return visible_lines(re.sub(r"\s+", " ", str(text)).strip())


def visible_lines(text: str) -> str:
    """Like :func:`visible`, for text whose line breaks and spaces matter: commands."""
    return "".join(
        f"\\u{ord(character):04x}"
        if unicodedata.category(character) in ("Cc", "Cf", "Co", "Cs") and character != "\n"
        else character
        for character in text
    )


def state_name(state: str) -> str:
    """A state or level in words."""
    return _STATE_NAMES.get(state, state.replace("_", " "))


def plain_number(value: float) -> str:
    """A number with thousands separators and no more digits than tell something."""
    magnitude = abs(value)
    if isinstance(value, int) or (magnitude < 1e15 and float(value).is_integer()):
        return f"{int(value):,}"
    if magnitude >= 100:
        return f"{value:,.0f}"
    if magnitude >= 10:
        return mean_number(value)
    return f"{value:,.2g}" if magnitude < 0.1 else f"{value:,.2f}".rstrip("0").rstrip(".")


def byte_size(value: float) -> str:
    """Bytes in decimal units: 1 KB is 1,000 bytes."""
    for step, name in _BYTE_STEPS:
        if abs(value) >= step:
            return f"{value / step:.{1 if abs(value) < 100 * step else 0}f} {name}".replace(".0 ", " ")
    return counted(int(value), "byte")


def percentage(value: float) -> str:
    """A ratio as a percentage."""
    percent = value * 100
    if 0 < abs(percent) < 0.05:
        return "under 0.1%"
    digits = 1 if 0 < abs(percent) < 10 and not float(percent).is_integer() else 0
    return f"{percent:.{digits}f}%"


def mean_number(value: float) -> str:
    """A mean, with at most one decimal."""
    return f"{value:,.1f}".removesuffix(".0")


def rough_time(milliseconds: float) -> str:
    """A predicted time with no more digits than a prediction has: ``under 1 ms``, ``30 ms``, ``1.2 s``."""
    if milliseconds < 1:
        return "under 1 ms"
    return f"{milliseconds:.0f} ms" if milliseconds < 999.5 else f"{milliseconds / 1000:,.1f} s"


def counted(number: float, noun: str, plural: str | None = None) -> str:
    """``1 table``, ``2 tables``."""
    return f"{plain_number(number)} {noun if number == 1 else plural or noun + 's'}"


def quantity(value: float | None, unit: str = "") -> str:
    """A value with its unit, or "not measured"."""
    if value is None or not math.isfinite(value):
        return NOT_MEASURED
    if unit in ("bytes", "byte", "B"):
        return byte_size(value)
    if unit == "mean":
        return mean_number(value)
    if unit in ("ratio", "share"):
        return percentage(value)
    if unit in ("ms", "s", "×"):
        return f"{plain_number(value)} {unit}"
    if unit in ("", "count", "number"):
        return plain_number(value)
    return f"{plain_number(value)} {_singular(unit) if value == 1 else unit}"


def _singular(unit: str) -> str:
    return f"{unit.removesuffix('ies')}y" if unit.endswith("ies") else unit.removesuffix("s")


def short_unit(unit: str) -> str:
    """A number's unit beside its label; what the label names already is left out."""
    return "" if unit == "manifests" else unit


def worker_name(url: str) -> str:
    """A worker's address without scheme and trailing slash."""
    return visible(url.removeprefix("http://").removesuffix("/"))


def of_total(value: int | None, total: int | None) -> str:
    """``3 of 42``; the total is left out when it is not known."""
    if value is None:
        return NOT_MEASURED
    return plain_number(value) if total is None else f"{plain_number(value)} of {plain_number(total)}"


def change(before: float | None, after: float | None, unit: str = "") -> str:
    """``42 → 4``; a value that was not measured is said to be so."""
    return f"{quantity(before, unit)} → {quantity(after, unit)}"


def relative(before: float, after: float) -> str:
    """The change in percent, ``−90%``; empty where it cannot be told."""
    if not before or before == after:
        return ""
    percent = (after - before) / abs(before) * 100
    if percent > 300:
        return f"×{plain_number(round(after / before, 1))}"
    return f"{percent:+.0f}%".replace("-", "−")


def parse_time(text: str | None) -> datetime | None:
    """An ISO time in UTC, or ``None`` when there is none or it cannot be read."""
    if not text:
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(UTC)


def day(text: str | None) -> str:
    """``30 Nov 2026``."""
    moment = parse_time(text)
    return f"{moment.day} {moment:%b %Y}" if moment else NOT_MEASURED


def clock(text: str | None) -> str:
    """``30 Nov 2026 06:05``, where two moments of one day are told apart."""
    parsed = parse_time(text)
    return f"{day(text)} {parsed:%H:%M}" if parsed else NOT_MEASURED


def moment(text: str | None) -> str:
    """``Mon 30 Nov 2026, 06:05 UTC``."""
    parsed = parse_time(text)
    return f"{parsed:%a} {parsed.day} {parsed:%b %Y, %H:%M} UTC" if parsed else NOT_MEASURED


def span(length: timedelta) -> str:
    """A length of time: ``2 days``, ``1 hour 30 minutes``."""
    minutes, seconds = divmod(round(length.total_seconds()), 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    units = {"day": days, "hour": hours, "minute": minutes, "second": seconds}
    return " ".join(counted(number, unit) for unit, number in units.items() if number)


def week(text: str) -> str:
    """``week 49, 2026`` (ISO)."""
    parsed = parse_time(text)
    if parsed is None:
        return ""
    calendar = parsed.isocalendar()
    return f"week {calendar.week}, {calendar.year}"


def joined(parts: list[str]) -> str:
    """``a, b and c``."""
    if len(parts) < 2:
        return "".join(parts)
    return f"{', '.join(parts[:-1])} and {parts[-1]}"


def shortened(text: str, limit: int) -> str:
    """Text of at most ``limit`` characters, cut in the middle."""
    if len(text) <= limit:
        return text
    head = (limit - 1) * 2 // 3
    return f"{text[:head]}…{text[len(text) - (limit - 1 - head) :]}"


def clipped(text: str, limit: int) -> str:
    """At most ``limit`` characters, cut between items or words."""
    if len(text) <= limit:
        return text
    cut = max(text.rfind("; ", 0, limit), 0) or text.rfind(" ", 0, limit)
    return f"{text[: cut if cut > 0 else limit].rstrip(' ;,')}; …"


def sentence(text: str | None) -> str:
    """Text that ends with a full stop, and begins with a capital if it begins with a word: names are left alone."""
    stripped = (text or "").strip()
    if not stripped:
        return ""
    first = _FIRST_WORD.match(stripped)
    capital = stripped[0].upper() + stripped[1:] if first else stripped
    return capital + ("" if stripped[-1] in ".!?:…" else ".")


def short_file_names(text: str) -> str:
    """Text whose long file names (``c17219e9-1f5b-4e96-9252-990f721bd5a5-m0.avro``) are cut in the middle."""
    return _FILE_ID.sub(r"\1…", text)


def anchor(table: str) -> str:
    """An id for the table's section: letters, digits and dashes, unique by a hash."""
    plain = re.sub(r"[^a-z0-9]+", "-", table.lower()).strip("-")[:40]
    return f"table-{plain}-{hashlib.sha256(table.encode()).hexdigest()[:6]}"
