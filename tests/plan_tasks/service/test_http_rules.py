"""Catalog routes, the order of errors, authentication, limits, logging and metrics."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any
from urllib.parse import urlsplit

import pytest
import requests
from pyiceberg.catalog.sql import SqlCatalog
from tests.plan_tasks.service.conftest import EVENTS, ODD, OTHER
from tests.plan_tasks.service.serving import Client
from tests.plan_tasks.service.test_planning_over_http import assert_error

from planning_health.errors import InputError, NotMeasurableError
from planning_health.plan_tasks.service import ENDPOINTS, ServiceOptions, TokenKind
from planning_health.plan_tasks.service.server import check_address, json_log

Serve = Callable[..., AbstractContextManager[Client]]

BEARER = "s3cr3t-bearer"


def get(client: Client, path: str, **options: Any) -> requests.Response:
    return client.session.get(client.url + path, timeout=30, **options)


def test_config_advertises_planning_and_nothing_that_writes(client: Client) -> None:
    config = get(client, "/v1/config").json()
    assert config["endpoints"] == list(ENDPOINTS)
    table = "/v1/{prefix}/namespaces/{namespace}/tables/{table}"
    assert {f"POST {table}/plan", f"POST {table}/tasks", f"GET {table}/plan/{{plan-id}}"} <= set(ENDPOINTS)
    writes = [item for item in ENDPOINTS if item.startswith("POST") and not item.endswith(("/plan", "/tasks"))]
    assert not writes
    assert get(client, "/v1/config", params={"warehouse": "lake"}).status_code == 200
    assert_error(get(client, "/v1/config", params={"warehouse": "sea"}), 404, "NoSuchWarehouseException")


def test_namespaces_are_listed_level_by_level(client: Client) -> None:
    assert get(client, "/v1/namespaces").json()["namespaces"] == [["db"], ["outer"]]
    assert get(client, "/v1/namespaces", params={"parent": "outer"}).json()["namespaces"] == [["outer", "in ner"]]
    assert get(client, "/v1/namespaces/outer%1Fin%20ner").json()["namespace"] == ["outer", "in ner"]
    assert get(client, "/v1/namespaces/outer%1fin+ner").status_code == 200
    assert client.session.head(client.url + "/v1/namespaces/db", timeout=30).status_code == 204
    assert_error(get(client, "/v1/namespaces/none"), 404, "NoSuchNamespaceException")
    assert_error(get(client, "/v1/namespaces", params={"parent": "none"}), 404, "NoSuchNamespaceException")


def test_tables_are_listed_and_loaded_with_their_metadata_as_written(client: Client, writer: SqlCatalog) -> None:
    names = [item["name"] for item in get(client, "/v1/namespaces/db/tables").json()["identifiers"]]
    assert {"events", "other"} <= set(names)
    assert_error(get(client, "/v1/namespaces/none/tables"), 404, "NoSuchNamespaceException")
    loaded = client.session.get(client.table(ODD), timeout=30).json()
    table = writer.load_table(ODD)
    assert loaded["metadata-location"] == table.metadata_location
    with table.io.new_input(table.metadata_location).open() as stream:
        assert loaded["metadata"] == json.loads(stream.read())
    assert client.session.head(client.table(ODD), timeout=30).status_code == 204
    assert client.session.head(client.table(("db", "none")), timeout=30).status_code == 404
    assert_error(client.session.get(client.table(("db", "none")), timeout=30), 404, "NoSuchTableException")
    assert_error(client.session.get(client.table(("none", "none")), timeout=30), 404, "NoSuchTableException")


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/v1/namespaces"),
        ("DELETE", "/v1/namespaces/db"),
        ("POST", "/v1/namespaces/db/properties"),
        ("POST", "/v1/namespaces/db/tables"),
        ("POST", "/v1/namespaces/db/register"),
        ("POST", "/v1/namespaces/db/tables/events"),
        ("DELETE", "/v1/namespaces/db/tables/events"),
        ("POST", "/v1/tables/rename"),
        ("POST", "/v1/transactions/commit"),
        ("POST", "/v1/namespaces/db/views"),
        ("PUT", "/v1/namespaces/db/tables/events/plan"),
        ("GET", "/v1/nothing"),
    ],
)
def test_what_writes_is_refused(client: Client, method: str, path: str) -> None:
    answer = client.session.request(method, client.url + path, json={"updates": []}, timeout=30)
    assert_error(answer, 406, "UnsupportedOperationException")
    assert "read-only" in answer.json()["error"]["message"]


def test_a_path_outside_the_catalog_is_not_found(client: Client) -> None:
    assert_error(get(client, "/favicon.ico"), 404, "NotFoundException")


def test_errors_of_a_token_come_in_the_specified_order(client: Client) -> None:
    missing, good = ("db", "none"), client.plan(EVENTS).json()["plan-tasks"][0]
    for body in (b"", b"{", b"[]", b"{}", b'{"plan-task": 5}', b'{"plan-task": ""}'):
        answer = client.session.post(client.table(missing) + "/tasks", data=body, timeout=30)
        assert_error(answer, 400, "BadRequestException")
    assert_error(client.redeem(missing, "!"), 404, "NoSuchTableException")
    for wrong in ("!", "e30", good + "A", good + "=", client.plan(OTHER).json()["plan-tasks"][0]):
        assert_error(client.redeem(EVENTS, wrong), 404, "NoSuchPlanTaskException")


def test_an_offset_past_the_end_is_no_plan_task(client: Client) -> None:
    from planning_health.plan_tasks import OffsetToken, decode, encode

    token = decode(client.plan(EVENTS).json()["plan-tasks"][-1])
    assert isinstance(token, OffsetToken)
    assert client.redeem(EVENTS, encode(OffsetToken(token.table, 20, 5, token.scan))).json()["file-scan-tasks"]
    past = encode(OffsetToken(token.table, 21, 1, token.scan))
    assert_error(client.redeem(EVENTS, past), 404, "NoSuchPlanTaskException")


@pytest.mark.parametrize(
    "request_body",
    [
        {"filter": None},
        {"filter": {"type": "eq", "term": "nothing", "value": 1}},
        {"filter": {"type": "eq", "term": "id"}},
        {"filter": {"type": "eq", "term": "day", "value": "no day"}},
        {"filter": {"type": "eq", "term": {"type": "transform", "transform": "day", "term": "day"}, "value": 1}},
        {"filter": {"type": "in", "term": "id", "values": 5}},
        {"filter": 7},
        {"snapshot-id": 1},
        {"snapshot-id": "1"},
        {"snapshot-id": True},
        {"start-snapshot-id": 1},
        {"case-sensitive": "yes"},
        {"select": "id"},
        {"stats-fields": [1]},
    ],
    ids=json.dumps,
)
def test_a_faulty_plan_request_is_a_bad_request(client: Client, request_body: dict[str, Any]) -> None:
    answer = client.session.post(client.table(EVENTS) + "/plan", json=request_body, timeout=30)
    assert_error(answer, 400, "BadRequestException")


@pytest.mark.parametrize("number", ["1e999", "-1e999", "NaN", "9223372036854775808", "1" * 5000])
def test_numbers_that_no_literal_can_hold_are_a_bad_request(client: Client, number: str) -> None:
    body = f'{{"filter": {{"type": "lt", "term": "id", "value": {number}}}}}'
    answer = client.session.post(client.table(EVENTS) + "/plan", data=body, timeout=30)
    assert_error(answer, 400, "BadRequestException")


@pytest.mark.parametrize("place", ["value", "term"])
def test_text_that_is_no_unicode_is_a_bad_request(client: Client, place: str) -> None:
    filter_ = {"type": "eq", "term": "kind", "value": "a"} | {place: "\udc00"}  # half of a surrogate pair
    answer = client.session.post(client.table(EVENTS) + "/plan", data=json.dumps({"filter": filter_}), timeout=30)
    assert_error(answer, 400, "BadRequestException")


@pytest.mark.parametrize("depth", [300, 5_000, 100_000])
def test_a_filter_that_is_nested_too_deeply_is_a_bad_request(client: Client, depth: int) -> None:
    leaf = '{"type":"eq","term":"id","value":1}'
    deep = '{"type":"or","left":{"type":"is-null","term":"id"},"right":' * depth + leaf + "}" * depth
    answer = client.session.post(client.table(EVENTS) + "/plan", data=f'{{"filter":{deep}}}', timeout=30)
    assert answer.status_code in ((200,) if depth == 300 else (400, 413)), answer.text[:200]


def test_unknown_request_fields_are_ignored(client: Client) -> None:
    assert client.plan(EVENTS, something_new=1, select=None).status_code == 200


def test_names_match_without_case_when_asked_to(client: Client) -> None:
    wanted = {"type": "eq", "term": "KIND", "value": "a"}
    assert client.plan(EVENTS, filter=wanted, case_sensitive=False).status_code == 200
    assert_error(client.plan(EVENTS, filter=wanted), 400, "BadRequestException")


def test_a_bearer_token_is_required_everywhere_when_it_is_set(serve_lake: Serve) -> None:
    with serve_lake(bearer=BEARER) as client:
        for headers in ({}, {"Authorization": "Bearer other"}, {"Authorization": BEARER}, {"Authorization": "Bearer "}):
            for path in ("/v1/config", "/metrics", "/v1/namespaces/db/tables/events", "/nothing"):
                assert_error(get(client, path, headers=headers), 401, "NotAuthorizedException")
        client.session.headers["Authorization"] = f"bearer {BEARER}"
        assert get(client, "/v1/config").status_code == 200
        assert client.plan(EVENTS).status_code == 200


def test_other_addresses_than_loopback_need_a_bearer_token() -> None:
    for host in ("127.0.0.1", "127.8.8.8", "::1", "localhost"):
        check_address(host, ServiceOptions())
    check_address("0.0.0.0", ServiceOptions(bearer=BEARER))  # noqa: S104 - nothing listens here
    for host in ("0.0.0.0", "::", "192.168.0.1", "localhost.example.com", ""):  # noqa: S104
        with pytest.raises(InputError, match="PLANNING_HEALTH_SERVE_TOKEN"):
            check_address(host, ServiceOptions())


def test_a_body_beyond_the_limit_is_refused_with_and_without_a_length(serve_lake: Serve) -> None:
    with serve_lake(body_bytes=1000) as client:
        url = client.table(EVENTS) + "/plan"
        assert client.session.post(url, data=b" " * 900 + b"{}", timeout=30).status_code == 200
        assert_error(client.session.post(url, data=b" " * 1001, timeout=30), 413, "BadRequestException")
        chunks = (b" " * 400 for _ in range(5))
        assert_error(requests.post(url, data=chunks, timeout=30), 413, "BadRequestException")


def test_a_broken_http_request_does_not_end_the_service(client: Client) -> None:
    address = urlsplit(client.url)
    with socket.create_connection((address.hostname, address.port or 80), timeout=10) as connection:
        connection.sendall(b"POST /v1/config HTTP/1.1\r\nHost: x\r\nContent-Length: many\r\n\r\n")
        assert connection.recv(100).startswith(b"HTTP/1.1 400")
    assert get(client, "/v1/config").status_code == 200


def test_each_request_is_one_log_line_without_secrets_and_without_filter_values(serve_lake: Serve) -> None:
    with serve_lake(bearer=BEARER, batch_size=4) as client:
        client.session.headers["Authorization"] = f"Bearer {BEARER}"
        token = client.plan(EVENTS, filter={"type": "not-eq", "term": "kind", "value": "private"}).json()["plan-tasks"][
            0
        ]
        client.redeem(EVENTS, token)
        client.plan(EVENTS, filter={"type": "eq", "term": "id", "value": "private"})
        lines = client.lines(3)
        assert [line["status"] for line in lines] == [200, 200, 400]
        assert lines[0]["plan"] == "computed"
        assert lines[0] | {"tasks": 4, "plan_tasks": 5, "tokens": "offset", "method": "POST"} == lines[0]
        assert lines[1]["plan"] == "hit"
        assert len({line["id"] for line in lines}) == 3
        written = repr(client.log.calls)
        assert not any(secret in written for secret in (BEARER, "private", token))


def test_metrics_count_requests_by_route_and_status(serve_lake: Serve) -> None:
    with serve_lake(batch_size=4) as client:
        client.scan(EVENTS)
        client.redeem(EVENTS, "!")
        client.session.get(client.url + "/v1/namespaces/db/tables/private", timeout=30)
        route = "/v1/namespaces/{namespace}/tables/{table}"
        requests_total = "planning_health_serve_requests_total"
        assert client.metric(f'{requests_total}{{method="POST",route="{route}/tasks",status="200"}}') == 5
        assert client.metric(f'{requests_total}{{method="POST",route="{route}/tasks",status="404"}}') == 1
        assert client.metric("planning_health_serve_file_scan_tasks_total") == 21
        assert client.metric("planning_health_serve_cache_plans") == 1
        exposition = get(client, "/metrics")
        assert exposition.headers["content-type"].startswith("text/plain")
        assert "private" not in exposition.text


@pytest.mark.parametrize(
    "wrong",
    [
        {"batch_size": -1},
        {"cache_bytes": -1},
        {"cache_entries": -1},
        {"cache_seconds": 0},
        {"bearer": ""},
        {"body_bytes": 0},
        {"token_bytes": 0},
    ],
    ids=str,
)
def test_options_out_of_range_name_the_value(wrong: dict[str, Any]) -> None:
    with pytest.raises(InputError, match="expected"):
        ServiceOptions(**wrong)


def test_an_unexpected_error_is_a_500_in_the_rest_format_without_details(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    from planning_health.plan_tasks.service.planning_service import PlanningService

    def fail(*_: object) -> None:
        raise RuntimeError("a detail")

    monkeypatch.setattr(PlanningService, "_first", fail)
    answer = client.plan(EVENTS)
    assert_error(answer, 500, "InternalServerError")
    assert "a detail" not in answer.text


def test_a_store_that_refuses_is_forbidden(client: Client, fresh_table: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from planning_health.plan_tasks.service import planning_service

    token = client.plan(fresh_table.name()).json()["plan-tasks"][0]
    fresh_table.append(fresh_table.scan().to_arrow())  # another snapshot, so that nothing is cached

    def refuse(*_: object) -> None:
        raise NotMeasurableError("it cannot be read") from PermissionError()

    monkeypatch.setattr(planning_service, "survivors", refuse)
    assert_error(client.plan(fresh_table.name()), 403, "ForbiddenException")
    assert_error(client.redeem(fresh_table.name(), "!"), 404, "NoSuchPlanTaskException")
    assert client.redeem(fresh_table.name(), token).status_code == 200  # the pinned plan is still in the cache


def test_both_kinds_of_tokens_are_redeemed_whatever_is_handed_out(serve_lake: Serve) -> None:
    with serve_lake(batch_size=4) as one, serve_lake(batch_size=2, tokens=TokenKind.ENTRY_RANGES) as other:
        for token in one.plan(EVENTS).json()["plan-tasks"]:
            assert other.redeem(EVENTS, token).json() == one.redeem(EVENTS, token).json()
        for token in other.plan(EVENTS).json()["plan-tasks"]:
            assert one.redeem(EVENTS, token).json() == other.redeem(EVENTS, token).json()


def test_a_traceback_in_the_log_holds_no_values(capsys: pytest.CaptureFixture[str]) -> None:
    log = json_log()
    try:
        secret = BEARER
        raise RuntimeError(f"of {len(secret)} letters")
    except RuntimeError:
        log.exception("unexpected error")
    line = json.loads(capsys.readouterr().err)
    assert line["exception"][0]["exc_type"] == "RuntimeError"
    assert BEARER not in json.dumps(line)


def test_methods_beyond_http_do_not_multiply_the_metrics(client: Client) -> None:
    client.session.request("PRIVATE", client.url + "/v1/config", timeout=30)
    assert "PRIVATE" not in get(client, "/metrics").text


def test_metadata_that_only_the_catalog_can_read_is_served_as_the_catalog_gave_it(
    client: Client, writer: SqlCatalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    from planning_health.plan_tasks.service import source

    def refused(_: object) -> Callable[[str], bytes]:
        def read(path: str) -> bytes:
            raise NotMeasurableError(f"{path} cannot be read")

        return read

    monkeypatch.setattr(source, "reader", refused)
    loaded = client.session.get(client.table(EVENTS), timeout=30).json()
    assert parse_table_metadata(loaded["metadata"]) == writer.load_table(EVENTS).metadata


def parse_table_metadata(document: Any) -> Any:
    from pyiceberg.table.metadata import TableMetadataUtil

    return TableMetadataUtil.parse_obj(document)
