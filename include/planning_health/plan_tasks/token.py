"""The plan-task token: a self-describing string that any replica can redeem, and nothing else accepts.

Source of the rules: the server-side scan planning design of Apache Gravitino (offset tokens, and the manifest
entry-range tokens of its follow-up), with the scan serialised as Iceberg's ``PlanTableScanRequestParser`` does it.
The token is unpadded base64url of compact JSON. It is not a capability: it grants nothing.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from planning_health.errors import InputError

MAX_INT64 = 2**63 - 1

_BASE64URL = re.compile(r"[A-Za-z0-9_-]+")
_PLAIN_LEVEL = re.compile(r"[^.`]+")


class InvalidTokenError(InputError):
    """This server would not have issued the token; it is reported like an unknown plan task."""


class ForeignTokenError(InputError):
    """The token was made for another table."""


class PastTheEndError(InputError):
    """The token's batch starts at or after the end of its plan."""


@dataclass(frozen=True)
class OffsetToken:
    """A range of positions in the total order of a pinned plan.

    Attributes:
        table: the table's identity, see ``table_identity``.
        offset: position of the first task, from 0.
        limit: most tasks to return.
        scan: the planned request with its snapshot pinned, as in the REST specification.
    """

    table: str
    offset: int
    limit: int
    scan: Mapping[str, Any]

    def payload(self) -> dict[str, Any]:
        """The JSON object that the token carries."""
        return {"table": self.table, "offset": self.offset, "limit": self.limit, "scan": dict(self.scan)}

    def task_slice(self, tasks: int) -> slice:
        """The tasks that the token stands for, in a plan of ``tasks`` tasks.

        Raises:
            PastTheEndError: the offset is at or past the end.
        """
        if self.offset >= tasks:
            raise PastTheEndError(f"plan task offset {self.offset}: expected less than the plan's {tasks} tasks")
        return slice(self.offset, min(self.offset + self.limit, tasks))


@dataclass(frozen=True)
class EntryRange:
    """Physical positions [start, end) of the entries of one manifest."""

    manifest: str
    start: int
    end: int


@dataclass(frozen=True)
class RangeToken:
    """Manifest entries to read, with what their meaning depends on.

    Attributes:
        table: the table's identity; the manifests must belong to this table's snapshot.
        snapshot_id: where sequence numbers and deletes come from.
        scan: the request; its filter decides which entries become tasks.
        ranges: what to read.
    """

    table: str
    snapshot_id: int
    scan: Mapping[str, Any]
    ranges: tuple[EntryRange, ...]

    def payload(self) -> dict[str, Any]:
        """The JSON object that the token carries."""
        ranges = [{"manifest": r.manifest, "entry-start": r.start, "entry-end": r.end} for r in self.ranges]
        return {"table": self.table, "snapshot-id": self.snapshot_id, "scan": dict(self.scan), "ranges": ranges}


Token = OffsetToken | RangeToken
"""What a plan-task string can stand for."""


def table_identity(levels: Sequence[str]) -> str:
    """Namespace levels and table name as one text. Levels that hold a dot are back-quoted, so that none collide."""
    return ".".join(
        level if _PLAIN_LEVEL.fullmatch(level) else "`" + level.replace("`", "``") + "`" for level in levels
    )


def encode(token: Token) -> str:
    """The plan-task string of a token.

    Raises:
        InvalidTokenError: a field has a value that ``decode`` would refuse.
    """
    payload = _read(token.payload()).payload()
    try:
        text = json.dumps(payload, separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidTokenError(f"plan task payload: expected JSON values ({error})") from None
    return base64.urlsafe_b64encode(text).rstrip(b"=").decode("ascii")


def decode(text: str) -> Token:
    """Reads a plan-task string. Unknown fields beside the scan are left out: a later format may add some.

    An unknown field of the scan is refused, because ignoring it could change the result.

    Raises:
        InvalidTokenError: it is not base64url, not JSON, not an object, or a field is missing or wrongly typed.
    """
    return _read(_parse(_unwrap(text)))


def from_payload(payload: object) -> Token:
    """Reads the JSON object that a token carries, with the scan's defaults filled in.

    Raises:
        InvalidTokenError: it is not an object, or a field is missing or wrongly typed.
    """
    return _read(payload)


def check_table(token: Token, levels: Sequence[str]) -> None:
    """Refuses a token that was made for another table.

    Raises:
        ForeignTokenError: the token names another table.
    """
    expected = table_identity(levels)
    if token.table != expected:
        raise ForeignTokenError(f"plan task of table {token.table!r}: expected one of table {expected!r}")


def _unwrap(text: str) -> bytes:
    """Python's decoder skips foreign characters and ignores spare bits; a token of ours has neither."""
    if not _BASE64URL.fullmatch(text):
        raise InvalidTokenError(f"plan task {_shown(text)}: expected unpadded base64url")
    try:
        raw = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    except binascii.Error:
        raise InvalidTokenError(f"plan task {_shown(text)}: expected unpadded base64url") from None
    if base64.urlsafe_b64encode(raw).rstrip(b"=").decode("ascii") != text:
        raise InvalidTokenError(f"plan task {_shown(text)}: expected canonical base64url")
    return raw


def _parse(raw: bytes) -> object:
    def refuse(constant: str) -> None:
        raise ValueError(f"{constant} is no JSON value")

    def unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
        fields = dict(pairs)
        if len(fields) != len(pairs):
            raise ValueError("a field is given twice")
        return fields

    try:
        value = json.loads(raw.decode(), parse_constant=refuse, object_pairs_hook=unique)
        # Halves of surrogate pairs pass json.loads and would fail wherever the value is written again.
        json.dumps(value, ensure_ascii=False, allow_nan=False).encode()
    except (ValueError, RecursionError) as error:
        raise InvalidTokenError(f"plan task content: expected JSON ({error})") from None
    return value


def _read(payload: object) -> Token:
    fields = _object(payload, "plan task")
    table = _text(fields, "table")
    scan = read_scan(_object(fields.get("scan"), "scan"))
    if "ranges" in fields:
        return RangeToken(table, _integer(fields, "snapshot-id"), scan, _read_ranges(fields["ranges"]))
    offset, limit = _integer(fields, "offset"), _integer(fields, "limit")
    if offset < 0:
        raise InvalidTokenError(f"offset {offset}: expected at least 0")
    if limit <= 0:
        raise InvalidTokenError(f"limit {limit}: expected at least 1")
    if offset + limit > MAX_INT64:
        raise InvalidTokenError(f"offset {offset} and limit {limit}: expected a sum of at most {MAX_INT64}")
    return OffsetToken(table, offset, limit, scan)


def _read_ranges(value: object) -> tuple[EntryRange, ...]:
    if not isinstance(value, list) or not value:
        raise InvalidTokenError(f"ranges {_shown(value)}: expected a list of entry ranges")
    ranges = []
    for item in value:
        fields = _object(item, "range")
        entry = EntryRange(_text(fields, "manifest"), _integer(fields, "entry-start"), _integer(fields, "entry-end"))
        if not 0 <= entry.start < entry.end:
            raise InvalidTokenError(f"range [{entry.start}, {entry.end}): expected 0 <= start < end")
        ranges.append(entry)
    return tuple(ranges)


def read_scan(scan: Mapping[str, Any]) -> dict[str, Any]:
    """The scan's known fields in the parser's order, checked; the two flags always, the others when they are there.

    Raises:
        InvalidTokenError: a field is not known or wrongly typed, or the snapshots contradict each other.
    """
    if unknown := sorted(scan.keys() - _SCAN_FIELDS.keys()):
        raise InvalidTokenError(f"scan field {_shown(unknown[0])}: expected one of {', '.join(_SCAN_FIELDS)}")
    known = {"case-sensitive": True, "use-snapshot-schema": False, **scan}
    for name, (accepts, expected) in _SCAN_FIELDS.items():
        if name in known and not accepts(known[name]):
            raise InvalidTokenError(f"scan field {name} {_shown(known[name])}: expected {expected}")
    bounds = [name in scan for name in ("start-snapshot-id", "end-snapshot-id")]
    if any(bounds) and (not all(bounds) or "snapshot-id" in scan):
        raise InvalidTokenError("scan: expected snapshot-id, or both start-snapshot-id and end-snapshot-id")
    return {name: known[name] for name in _SCAN_FIELDS if name in known and known[name] != []}


def _is_int64(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and -MAX_INT64 - 1 <= value <= MAX_INT64


def _is_names(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


_INT64 = (_is_int64, "a 64-bit integer")
_NAMES = (_is_names, "a list of names")
_FLAG: tuple[Callable[[object], bool], str] = (lambda value: isinstance(value, bool), "true or false")
_FILTER: tuple[Callable[[object], bool], str] = (lambda value: isinstance(value, dict | bool), "an expression")

_SCAN_FIELDS: dict[str, tuple[Callable[[object], bool], str]] = {
    "snapshot-id": _INT64,
    "start-snapshot-id": _INT64,
    "end-snapshot-id": _INT64,
    "select": _NAMES,
    "filter": _FILTER,
    "case-sensitive": _FLAG,
    "use-snapshot-schema": _FLAG,
    "stats-fields": _NAMES,
    "min-rows-requested": _INT64,
    "schema-id": _INT64,  # not of the request: pins the schema that the scan was bound to
}


def _object(value: object, name: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise InvalidTokenError(f"{name} {_shown(value)}: expected a JSON object")
    return value


def _text(fields: Mapping[str, Any], name: str) -> str:
    value = fields.get(name)
    if not isinstance(value, str) or not value:
        raise InvalidTokenError(f"{name} {_shown(value)}: expected a text")
    return value


def _integer(fields: Mapping[str, Any], name: str) -> int:
    value = fields.get(name)
    if not isinstance(value, int) or not _is_int64(value):
        raise InvalidTokenError(f"{name} {_shown(value)}: expected a 64-bit integer")
    return value


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}…"
