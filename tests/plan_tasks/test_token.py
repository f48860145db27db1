"""What a token is, and everything that is not one."""

from __future__ import annotations

import base64
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planning_health.errors import InputError
from planning_health.plan_tasks import (
    EntryRange,
    ForeignTokenError,
    InvalidTokenError,
    OffsetToken,
    PastTheEndError,
    RangeToken,
    check_table,
    decode,
    encode,
    from_payload,
    table_identity,
)

EXAMPLE = (
    "eyJ0YWJsZSI6ImRiLnRibCIsIm9mZnNldCI6MTAwLCJsaW1pdCI6MTAwLCJzY2FuIjp7InNuYXBzaG90LWlkIjo0MiwiY2Fz"
    "ZS1zZW5zaXRpdmUiOnRydWUsInVzZS1zbmFwc2hvdC1zY2hlbWEiOmZhbHNlfX0"
)
SCAN = {"snapshot-id": 42, "case-sensitive": True, "use-snapshot-schema": False}
PAYLOAD = {"table": "db.tbl", "offset": 100, "limit": 100, "scan": SCAN}


def wrapped(text: str | bytes) -> str:
    raw = text.encode() if isinstance(text, str) else text
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def token_with(**changes: object) -> str:
    return wrapped(json.dumps({key: value for key, value in {**PAYLOAD, **changes}.items() if value is not ...}))


def test_the_example_encodes_and_decodes() -> None:
    token = OffsetToken("db.tbl", 100, 100, SCAN)
    assert encode(token) == EXAMPLE
    assert decode(EXAMPLE) == token


def test_defaults_of_the_scan_are_written_out() -> None:
    assert encode(OffsetToken("db.tbl", 100, 100, {"snapshot-id": 42})) == EXAMPLE


def test_scan_fields_have_one_order_and_absent_ones_are_left_out() -> None:
    scan = {
        "min-rows-requested": 7,
        "stats-fields": ["b"],
        "use-snapshot-schema": True,
        "case-sensitive": False,
        "filter": {"type": "eq", "term": "day", "value": "2026-07-28"},
        "select": ["a"],
        "snapshot-id": 42,
    }
    decoded = decode(encode(OffsetToken("t", 0, 1, scan)))
    assert list(decoded.scan) == [
        "snapshot-id",
        "select",
        "filter",
        "case-sensitive",
        "use-snapshot-schema",
        "stats-fields",
        "min-rows-requested",
    ]
    incremental = decode(encode(OffsetToken("t", 0, 1, {"end-snapshot-id": 2, "start-snapshot-id": 1})))
    assert list(incremental.scan)[:2] == ["start-snapshot-id", "end-snapshot-id"]


def test_a_filter_with_text_beyond_ascii_round_trips() -> None:
    scan = {**SCAN, "filter": {"type": "eq", "term": "città", "value": "\U0001f600 ÿ?"}}
    text = encode(OffsetToken("t", 0, 1, scan))
    assert not set(text) & set("+/=")
    assert decode(text).scan["filter"] == scan["filter"]


def test_a_long_filter_repeats_in_each_token() -> None:
    filter_ = {"type": "in", "term": "id", "values": list(range(10_000, 11_500))}
    scan = {"snapshot-id": 3821550127947089009, "filter": filter_}
    assert len(encode(OffsetToken("db.tbl", 100, 100, scan))) == 12_243


@pytest.mark.parametrize(
    "text",
    [
        "",
        "not base64!",
        EXAMPLE + "=",
        EXAMPLE + "\n",
        " " + EXAMPLE,
        EXAMPLE[:-1] + "1",  # another spelling of the same bytes
        "A",
        "AAAAA",
        wrapped("{")[:-1],
        wrapped("not json"),
        wrapped(b"\xff\xfe"),
        wrapped("[]"),
        wrapped('"db.tbl"'),
        wrapped("null"),
        wrapped("NaN"),
        wrapped("[" * 100_000),
        wrapped('{"table": "t", "table": "t", "offset": 0, "limit": 1, "scan": {}}'),
        wrapped(r'{"table": "\ud800", "offset": 0, "limit": 1, "scan": {}}'),
        wrapped('{"table": "t", "offset": ' + "9" * 5000 + ', "limit": 1, "scan": {}}'),
    ],
)
def test_what_is_no_base64url_of_a_json_object_is_refused(text: str) -> None:
    with pytest.raises(InvalidTokenError):
        decode(text)


@pytest.mark.parametrize("field", ["table", "offset", "limit", "scan"])
@pytest.mark.parametrize("value", [..., None, True, 10.0, [], "", {"a": 1.5}], ids=repr)
def test_a_missing_or_wrongly_typed_field_is_refused(field: str, value: object) -> None:
    with pytest.raises(InvalidTokenError, match="expected"):
        decode(token_with(**{field: value}))


@pytest.mark.parametrize(
    ("offset", "limit"),
    [(-1, 1), (0, 0), (0, -1), (2**63 - 1, 1), (1, 2**63 - 1), (2**63, 1), (0, 2**63)],
)
def test_offsets_and_limits_out_of_range_are_refused(offset: int, limit: int) -> None:
    with pytest.raises(InvalidTokenError):
        decode(token_with(offset=offset, limit=limit))


def test_the_largest_range_is_accepted() -> None:
    assert decode(token_with(offset=2**63 - 2, limit=1)).payload()["offset"] == 2**63 - 2


@pytest.mark.parametrize(
    "scan",
    [
        {"snapshot-id": "42"},
        {"snapshot-id": True},
        {"snapshot-id": None},
        {"snapshot-id": 2**63},
        {"snapshot-id": 1, "select": "a"},
        {"snapshot-id": 1, "select": [1]},
        {"snapshot-id": 1, "filter": None},
        {"snapshot-id": 1, "filter": "a = 1"},
        {"snapshot-id": 1, "case-sensitive": 1},
        {"snapshot-id": 1, "use-snapshot-schema": "false"},
        {"snapshot-id": 1, "stats-fields": [None]},
        {"snapshot-id": 1, "min-rows-requested": 1.0},
        {"snapshot-id": 1, "snapshotid": 1},
        {"start-snapshot-id": 1},
        {"end-snapshot-id": 1},
        {"snapshot-id": 1, "start-snapshot-id": 1, "end-snapshot-id": 2},
    ],
    ids=repr,
)
def test_a_scan_that_no_request_can_have_is_refused(scan: dict[str, object]) -> None:
    with pytest.raises(InvalidTokenError):
        decode(token_with(scan=scan))
    with pytest.raises(InvalidTokenError):
        from_payload({**PAYLOAD, "scan": scan})


def test_unknown_fields_beside_the_scan_are_left_for_later_formats() -> None:
    assert decode(token_with(version=2)) == decode(EXAMPLE)


def test_a_value_that_json_cannot_carry_is_not_encoded() -> None:
    for value in (float("nan"), {1, 2}, "\ud800"):
        with pytest.raises(InvalidTokenError):
            encode(OffsetToken("t", 0, 1, {**SCAN, "filter": {"value": value}}))


def test_range_tokens_round_trip() -> None:
    ranges = (EntryRange("s3://b/m1.avro", 40, 60), EntryRange("s3://b/m2.avro", 0, 60))
    token = RangeToken("db.t", 42, SCAN, ranges)
    assert decode(encode(token)) == token
    assert list(token.payload()) == ["table", "snapshot-id", "scan", "ranges"]


@pytest.mark.parametrize(
    "ranges",
    [
        None,
        [],
        {},
        [1],
        [{"manifest": "m", "entry-start": 0}],
        [{"manifest": "m", "entry-start": 5, "entry-end": 5}],
        [{"manifest": "m", "entry-start": -1, "entry-end": 5}],
        [{"manifest": "", "entry-start": 0, "entry-end": 5}],
        [{"manifest": "m", "entry-start": 0.0, "entry-end": 5}],
    ],
    ids=repr,
)
def test_entry_ranges_of_another_shape_are_refused(ranges: object) -> None:
    with pytest.raises(InvalidTokenError):
        decode(wrapped(json.dumps({"table": "t", "snapshot-id": 1, "scan": SCAN, "ranges": ranges})))


def test_a_token_of_another_table_is_foreign() -> None:
    token = decode(EXAMPLE)
    check_table(token, ("db", "tbl"))
    for other in (("db", "tbl2"), ("db2", "tbl"), ("db.tbl",), ("tbl",)):
        with pytest.raises(ForeignTokenError):
            check_table(token, other)


@given(*[st.lists(st.text("a.`", min_size=1, max_size=3), min_size=1, max_size=3)] * 2)
def test_levels_with_dots_never_collide(one: list[str], other: list[str]) -> None:
    assert (table_identity(one) == table_identity(other)) == (one == other)


def test_a_slice_ends_with_the_plan_and_does_not_start_there() -> None:
    token = decode(EXAMPLE)
    assert isinstance(token, OffsetToken)
    assert token.task_slice(1000) == slice(100, 200)
    assert token.task_slice(101) == slice(100, 101)
    for tasks in (100, 99, 0):
        with pytest.raises(PastTheEndError, match="offset 100"):
            token.task_slice(tasks)


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(), max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=300)
@given(st.text(max_size=60) | st.binary(max_size=60).map(wrapped))
def test_arbitrary_text_is_decoded_or_refused_and_nothing_else(text: str) -> None:
    try:
        decode(text)
    except InputError:
        return


@settings(max_examples=300)
@given(
    st.fixed_dictionaries(
        {},
        optional={
            "table": JSON_VALUES,
            "offset": st.integers(-2, 2**64) | JSON_VALUES,
            "limit": st.integers(-2, 2**64) | JSON_VALUES,
            "snapshot-id": JSON_VALUES,
            "ranges": JSON_VALUES,
            "scan": st.dictionaries(st.sampled_from(["snapshot-id", "select", "filter", "x"]), JSON_VALUES)
            | JSON_VALUES,
        },
    )
)
def test_arbitrary_payloads_are_refused_or_round_trip(payload: dict[str, object]) -> None:
    try:
        token = decode(wrapped(json.dumps(payload)))
    except InputError:
        return
    assert decode(encode(token)) == token


@given(st.integers(0, len(EXAMPLE) - 1), st.characters(codec="ascii"))
def test_one_changed_character_never_breaks_decoding(position: int, character: str) -> None:
    changed = EXAMPLE[:position] + character + EXAMPLE[position + 1 :]
    try:
        assert encode(decode(changed))
    except InputError:
        return
