"""No token and no request, however odd, makes the service fail.

``PLANNING_SERVICE_FUZZ`` is the number of inputs; the full form sets 10000.
"""

from __future__ import annotations

import base64
import json
import os
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.plan_tasks.service.conftest import EVENTS
from tests.plan_tasks.service.serving import Client

INPUTS = int(os.environ.get("PLANNING_SERVICE_FUZZ", "300"))

fuzzed = settings(max_examples=INPUTS, deadline=None, suppress_health_check=list(HealthCheck))

FIELDS = ("table", "offset", "limit", "scan", "ranges", "snapshot-id")
SCAN_FIELDS = (
    "snapshot-id",
    "start-snapshot-id",
    "end-snapshot-id",
    "select",
    "filter",
    "case-sensitive",
    "use-snapshot-schema",
    "stats-fields",
    "min-rows-requested",
    "schema-id",
)
COLUMNS = ("id", "kind", "day", "payload", "code", "KIND", "nothing", "")
OPERATIONS = ("eq", "not-eq", "lt", "gt-eq", "in", "not-in", "starts-with", "is-null", "not-null", "is-nan", "odd")

numbers = st.one_of(st.integers(-(2**63), 2**63 - 1), st.integers(-3, 30), st.floats(), st.booleans())
texts = st.one_of(st.text(max_size=12), st.sampled_from(["2026-01-01", "11", "0301", "99999-01-01", "a", "-1", "1.5"]))
scalars = st.one_of(numbers, texts, st.none())
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3)
)
leaves = st.fixed_dictionaries(
    {"type": st.sampled_from(OPERATIONS), "term": st.sampled_from(COLUMNS)},
    optional={"value": scalars, "values": st.lists(scalars, max_size=4) | scalars},
)
filters = st.recursive(
    leaves | values,
    lambda inner: st.fixed_dictionaries(
        {"type": st.sampled_from(["and", "or", "not", "literal"])},
        optional={"left": inner, "right": inner, "child": inner, "value": inner},
    ),
    max_leaves=6,
)
scans = st.dictionaries(st.sampled_from(SCAN_FIELDS), values, max_size=4)


@st.composite
def payloads(draw: st.DrawFn, real: dict[str, Any]) -> Any:
    """A real token's payload with some fields replaced, left out or added."""
    payload = json.loads(json.dumps(real))
    for name in draw(st.lists(st.sampled_from(FIELDS), max_size=2)):
        payload[name] = draw(values)
    if isinstance(payload.get("scan"), dict):
        payload["scan"] |= draw(scans)
        if draw(st.booleans()):
            payload["scan"]["filter"] = draw(filters)
    for name in draw(st.lists(st.sampled_from(FIELDS), max_size=1)):
        payload.pop(name, None)
    return payload if draw(st.integers(0, 9)) else draw(values)


def _encoded(payload: Any) -> str:
    return base64.urlsafe_b64encode(json.dumps(payload).encode()).rstrip(b"=").decode()


def _check(answer: Any, *good: int) -> None:
    assert answer.status_code in good, (answer.status_code, answer.text)
    if answer.status_code != 200:
        assert answer.json()["error"]["code"] == answer.status_code


def test_no_token_makes_the_service_fail(any_client: Client) -> None:
    token = any_client.plan(EVENTS).json()["plan-tasks"][0]
    real = json.loads(base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)))

    @fuzzed
    @given(payloads(real))
    def fuzz(payload: Any) -> None:
        _check(any_client.redeem(EVENTS, _encoded(payload)), 200, 404)

    fuzz()


def test_no_text_makes_the_service_fail(client: Client) -> None:
    @fuzzed
    @given(st.text(max_size=40) | st.binary(max_size=40).map(lambda raw: base64.urlsafe_b64encode(raw).decode()))
    def fuzz(token: str) -> None:
        body = json.dumps({"plan-task": token}).encode("utf-8", "surrogatepass")
        url = client.table(EVENTS) + "/tasks"
        _check(client.session.post(url, data=body, timeout=30), 400, 404)

    fuzz()


def test_no_plan_request_makes_the_service_fail(any_client: Client) -> None:
    @fuzzed
    @given(scans | values, filters)
    def fuzz(scan: Any, filter_: Any) -> None:
        body = scan | {"filter": filter_} if isinstance(scan, dict) else scan
        url = any_client.table(EVENTS) + "/plan"
        _check(any_client.session.post(url, data=json.dumps(body).encode(), timeout=30), 200, 400)

    fuzz()
