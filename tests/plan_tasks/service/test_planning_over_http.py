"""Plans over HTTP: batches, both kinds of tokens, and what a token means when the table has moved on."""

from __future__ import annotations

import base64
import json
import random
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from typing import Any

import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.table import Table
from pyiceberg.types import StringType
from tests.plan_tasks.service.conftest import APPENDS, EVENTS, KINDS, ODD, OTHER, rows
from tests.plan_tasks.service.serving import Client, paths, tasks

from planning_health.plan_tasks.service import TokenKind

Serve = Callable[..., AbstractContextManager[Client]]

FILES = APPENDS * len(KINDS)


def payload(token: str) -> dict[str, Any]:
    return json.loads(base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)))


def token_of(fields: Any) -> str:
    return base64.urlsafe_b64encode(json.dumps(fields).encode()).rstrip(b"=").decode()


def data_paths(table: Table, **scan: Any) -> set[str]:
    return {task.file.file_path for task in table.scan(**scan).plan_files()}


@pytest.mark.parametrize("kind", list(TokenKind))
@pytest.mark.parametrize("batch_size", [0, 1, 7, 100])
def test_every_task_is_delivered_once_in_every_batch_size(
    serve_lake: Serve, writer: SqlCatalog, kind: TokenKind, batch_size: int
) -> None:
    with serve_lake(batch_size=batch_size, tokens=kind) as client:
        answers = client.scan(EVENTS)
    delivered = paths(answers)
    assert len(delivered) == FILES
    assert set(delivered) == data_paths(writer.load_table(EVENTS))
    assert all(len(answer["file-scan-tasks"]) <= (batch_size or FILES) for answer in answers)
    assert len(answers) == (1 if batch_size in (0, 100) else FILES // batch_size)


def test_without_tokens_the_member_plan_tasks_is_absent(serve_lake: Serve) -> None:
    with serve_lake(batch_size=100) as client:
        answer = client.plan(EVENTS).json()
    assert answer["status"] == "completed"
    assert "plan-tasks" not in answer
    assert "delete-files" not in answer


def test_a_task_batch_carries_no_plan_tasks_and_no_status(any_client: Client) -> None:
    assert all(answer.keys() == {"file-scan-tasks"} for answer in any_client.scan(EVENTS)[1:])


def test_a_filter_prunes_files_and_the_residual_travels_with_every_task(any_client: Client) -> None:
    wanted = {"type": "and", "left": {"type": "eq", "term": "kind", "value": "a"}, "right": _ge("id", 30)}
    found = tasks(any_client.scan(EVENTS, filter=wanted))
    assert len(found) == APPENDS - 3
    assert all(task["data-file"]["partition"] == ["a"] for task in found)
    assert all(task["residual-filter"] == _ge("id", 30) for task in found)


def test_a_residual_that_is_always_true_is_a_bare_true(any_client: Client) -> None:
    found = tasks(any_client.scan(EVENTS, filter={"type": "eq", "term": "kind", "value": "b"}))
    assert [task["residual-filter"] for task in found] == [True] * APPENDS


def _ge(column: str, value: Any) -> dict[str, Any]:
    return {"type": "gt-eq", "term": column, "value": value}


@pytest.mark.parametrize(
    ("column", "value", "count"), [("payload", "11", FILES // 3), ("code", "0301", 1), ("payload", "FF", 0)]
)
def test_binary_and_fixed_literals_round_trip(any_client: Client, column: str, value: str, count: int) -> None:
    for wanted in (
        {"type": "eq", "term": column, "value": value},
        {"type": "in", "term": column, "values": [value, "99" * (len(value) // 2)]},
    ):
        found = tasks(any_client.scan(EVENTS, filter=wanted))
        assert len(found) == count
        assert all(task["residual-filter"] == wanted for task in found)


def test_tokens_redeem_in_any_order_and_more_than_once(any_client: Client) -> None:
    first, *batches = any_client.scan(EVENTS)
    order = list(enumerate(first["plan-tasks"])) * 2
    random.Random(1).shuffle(order)  # noqa: S311 - not for secrets
    for place, token in order:
        assert any_client.redeem(EVENTS, token).json() == batches[place]


def test_tokens_stand_for_the_planned_snapshot_after_an_append(any_client: Client, fresh_table: Table) -> None:
    name = fresh_table.name()
    first = any_client.plan(name).json()
    before = data_paths(fresh_table)
    fresh_table.append(rows(99))
    later = [any_client.redeem(name, token).json() for token in first["plan-tasks"]]
    assert set(paths([first, *later])) == before
    assert len(paths(any_client.scan(name))) == len(before) + len(KINDS)


def test_tokens_keep_the_schema_that_the_scan_was_bound_to(any_client: Client, fresh_table: Table) -> None:
    name = fresh_table.name()
    wanted = _ge("id", 0)
    first = any_client.plan(name, filter=wanted).json()
    with fresh_table.update_schema() as update:
        update.rename_column("id", "identifier")
    with fresh_table.update_schema() as update:
        update.add_column("id", StringType())
    for token in first["plan-tasks"]:
        assert any_client.redeem(name, token).status_code == 200
    assert any_client.plan(name, filter=_ge("identifier", 0)).status_code == 200


def test_a_token_of_an_expired_snapshot_is_none(any_client: Client, fresh_table: Table) -> None:
    name = fresh_table.name()
    planned = fresh_table.current_snapshot()
    assert planned is not None
    first = any_client.plan(name).json()
    fresh_table.append(rows(98))
    fresh_table.maintenance.expire_snapshots().by_id(planned.snapshot_id).commit()
    answer = any_client.redeem(name, first["plan-tasks"][0])
    assert_error(answer, 404, "NoSuchPlanTaskException")
    assert "expired" in answer.json()["error"]["message"]
    assert_error(any_client.plan(name, snapshot_id=planned.snapshot_id), 400, "BadRequestException")


def test_a_token_of_another_table_is_none(any_client: Client) -> None:
    token = any_client.plan(EVENTS).json()["plan-tasks"][0]
    assert_error(any_client.redeem(OTHER, token), 404, "NoSuchPlanTaskException")


def test_a_token_of_a_dropped_and_recreated_table_is_none(
    any_client: Client, fresh_table: Table, writer: SqlCatalog
) -> None:
    name = fresh_table.name()
    token = any_client.plan(name).json()["plan-tasks"][0]
    writer.drop_table(name)
    assert_error(any_client.redeem(name, token), 404, "NoSuchTableException")
    writer.create_table(name, fresh_table.schema()).append(rows(1))
    assert_error(any_client.redeem(name, token), 404, "NoSuchPlanTaskException")


def test_names_with_spaces_slashes_and_plus_signs_are_served(any_client: Client) -> None:
    assert len(paths(any_client.scan(ODD))) == FILES


def test_an_earlier_snapshot_is_planned_as_it_was(any_client: Client, writer: SqlCatalog) -> None:
    snapshots = writer.load_table(EVENTS).snapshots()
    found = paths(any_client.scan(EVENTS, snapshot_id=snapshots[2].snapshot_id, use_snapshot_schema=True))
    assert len(found) == 3 * len(KINDS)


def test_an_incremental_scan_gives_what_was_appended_after_the_start(any_client: Client, writer: SqlCatalog) -> None:
    table = writer.load_table(EVENTS)
    start, end = table.snapshots()[1].snapshot_id, table.snapshots()[4].snapshot_id
    answers = any_client.scan(EVENTS, start_snapshot_id=start, end_snapshot_id=end)
    assert set(paths(answers)) == data_paths(table, snapshot_id=end) - data_paths(table, snapshot_id=start)
    assert_error(any_client.plan(EVENTS, start_snapshot_id=end, end_snapshot_id=start), 400, "BadRequestException")


def test_entries_are_physical_positions_also_after_deletes(serve_lake: Serve, fresh_table: Table) -> None:
    fresh_table.delete("kind = 'b' and id < 40")
    fresh_table.append(rows(97))
    with serve_lake(batch_size=2, tokens=TokenKind.ENTRY_RANGES) as client:
        delivered = paths(client.scan(fresh_table.name()))
    assert sorted(delivered) == sorted(data_paths(fresh_table))


def test_statistics_are_sent_of_the_fields_that_are_asked_for_only(any_client: Client) -> None:
    plain = tasks(any_client.scan(EVENTS))[0]["data-file"]
    assert not any(name.endswith(("-counts", "-bounds")) for name in plain)
    file = tasks(any_client.scan(EVENTS, stats_fields=["id", "code"], filter=_ge("kind", "c")))[-1]["data-file"]
    assert file["value-counts"] == {"keys": [1, 5], "values": [1, 1]}
    assert file["lower-bounds"]["keys"] == [1, 5]
    assert len(file["lower-bounds"]["values"][0]) == 16
    assert_error(any_client.plan(EVENTS, stats_fields=["nothing"]), 400, "BadRequestException")


def test_a_token_pins_snapshot_and_schema_and_repeats_the_request(client: Client, writer: SqlCatalog) -> None:
    wanted = _ge("id", 1)
    token = client.plan(EVENTS, filter=wanted, select=["id"]).json()["plan-tasks"][0]
    snapshot = writer.load_table(EVENTS).current_snapshot()
    assert snapshot is not None
    assert payload(token) == {
        "table": "db.events",
        "offset": 4,
        "limit": 4,
        "scan": {
            "snapshot-id": snapshot.snapshot_id,
            "select": ["id"],
            "filter": wanted,
            "case-sensitive": True,
            "use-snapshot-schema": False,
            "schema-id": 0,
        },
    }


def test_an_entry_range_beyond_the_manifest_or_of_another_manifest_is_no_plan_task(serve_lake: Serve) -> None:
    with serve_lake(batch_size=2, tokens=TokenKind.ENTRY_RANGES) as client:
        fields = payload(client.plan(EVENTS).json()["plan-tasks"][0])
        foreign = payload(client.plan(OTHER).json()["plan-tasks"][0])
        for ranges in (
            [fields["ranges"][0] | {"entry-end": 1000}],
            foreign["ranges"],
            fields["ranges"] * 2,
            fields["ranges"] * 101,
        ):
            answer = client.redeem(EVENTS, token_of(fields | {"ranges": ranges}))
            assert_error(answer, 404, "NoSuchPlanTaskException")
        other_snapshot = client.redeem(EVENTS, token_of(fields | {"snapshot-id": 1}))
        assert_error(other_snapshot, 404, "NoSuchPlanTaskException")


def test_a_plan_id_can_be_fetched_and_cancelled(any_client: Client) -> None:
    planned = any_client.plan(EVENTS).json()
    url = any_client.table(EVENTS) + "/plan/" + planned["plan-id"]
    assert any_client.session.get(url, timeout=30).json() == planned
    assert_error(
        any_client.session.get(any_client.table(OTHER) + "/plan/" + planned["plan-id"], timeout=30),
        404,
        "NoSuchPlanIdException",
    )
    assert any_client.session.delete(url, timeout=30).status_code == 204
    for method in ("get", "delete"):
        assert_error(any_client.session.request(method, url, timeout=30), 404, "NoSuchPlanIdException")
    assert any_client.redeem(EVENTS, planned["plan-tasks"][0]).status_code == 200


def test_a_cancelled_plan_is_released_when_nobody_else_uses_it(serve_lake: Serve) -> None:
    with serve_lake(batch_size=4) as client:
        first, second = client.plan(EVENTS).json(), client.plan(EVENTS).json()
        held = client.metric("planning_health_serve_cache_held_bytes")
        assert held > 0
        for planned, left in ((first, held), (second, 0)):
            client.session.delete(f"{client.table(EVENTS)}/plan/{planned['plan-id']}", timeout=30)
            assert client.metric("planning_health_serve_cache_held_bytes") == left


@pytest.mark.parametrize("kind", list(TokenKind))
def test_more_plan_tasks_than_one_response_may_hold_are_refused_with_what_to_do(
    serve_lake: Serve, kind: TokenKind
) -> None:
    with serve_lake(batch_size=1, tokens=kind, token_bytes=2_000) as client:
        answer = client.plan(EVENTS)
        assert_error(answer, 400, "BadRequestException")
        told = answer.json()["error"]["message"]
        assert told.startswith("batch size 1: the plan-tasks of this scan exceed 2,000 bytes")
    with serve_lake(batch_size=100, tokens=kind, token_bytes=1) as client:
        assert len(paths(client.scan(EVENTS))) == FILES


def test_one_scan_of_many_batches_computes_its_plan_once(serve_lake: Serve) -> None:
    with serve_lake(batch_size=1) as client:
        client.scan(EVENTS)
        assert client.metric('planning_health_serve_plans_total{found="computed"}') == 1
        assert client.metric('planning_health_serve_plans_total{found="hit"}') == FILES - 1


def test_without_a_cache_every_request_plans_again(serve_lake: Serve) -> None:
    with serve_lake(batch_size=7, cache_bytes=0) as client:
        client.scan(EVENTS)
        assert client.metric('planning_health_serve_plans_total{found="computed"}') == FILES // 7


def test_concurrent_scans_of_one_plan_compute_it_once_within_the_cache_bounds(serve_lake: Serve) -> None:
    with serve_lake(batch_size=4, cache_bytes=20_000, cache_entries=2) as client, ThreadPoolExecutor(30) as pool:
        scans = [pool.submit(lambda: paths(Client(client.url, client.log).scan(EVENTS))) for _ in range(30)]
        assert len({tuple(scan.result()) for scan in scans}) == 1
        assert client.metric('planning_health_serve_plans_total{found="computed"}') == 1
        assert 0 < client.metric("planning_health_serve_cache_held_bytes") <= 20_000


def test_entry_ranges_compute_no_whole_plan(serve_lake: Serve) -> None:
    with serve_lake(batch_size=2, tokens=TokenKind.ENTRY_RANGES) as client:
        client.scan(EVENTS)
        assert client.metric("planning_health_serve_plans_total") == 0


def assert_error(answer: Any, status: int, kind: str) -> None:
    assert answer.status_code == status, answer.text
    error = answer.json()["error"]
    assert answer.json().keys() == {"error"}
    assert error.keys() == {"message", "type", "code"}
    assert (error["type"], error["code"]) == (kind, status)
    assert error["message"]
