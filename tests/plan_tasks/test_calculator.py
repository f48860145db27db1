"""The JSON values of ``planning-health plan-tasks``."""

from __future__ import annotations

import json

import pytest

from planning_health.errors import InputError
from planning_health.plan_tasks import calculator


def test_batching_document() -> None:
    document = calculator.batching(1050, 100, 2)
    assert document == {
        "inline": 100,
        "tokens": 10,
        "requests": 11,
        "last_batch": 50,
        "plans_computed": {
            "no_cache": 11,
            "affinity_cache": 1,
            "local_cache_expected": pytest.approx(2 * (1 - 0.5**11)),
            "bound": 2,
        },
    }
    json.dumps(document)


def test_encode_and_decode_are_inverse() -> None:
    payload = {
        "table": "db.tbl",
        "offset": 100,
        "limit": 100,
        "scan": {"snapshot-id": 42, "case-sensitive": True, "use-snapshot-schema": False},
    }
    assert calculator.decode(calculator.encode(payload)) == payload


@pytest.mark.parametrize("payload", [None, [], {}, {"table": "t", "offset": 0, "limit": 1}])
def test_a_payload_of_another_shape_is_refused(payload: object) -> None:
    with pytest.raises(InputError, match="expected"):
        calculator.encode(payload)


def test_a_text_that_is_no_token_is_refused() -> None:
    with pytest.raises(InputError, match="expected unpadded base64url"):
        calculator.decode("no token!")


def test_ranges_document() -> None:
    assert calculator.ranges([60, 60, 60, 70], 100) == {
        "batches": [
            [[0, 0, 60], [1, 0, 40]],
            [[1, 40, 60], [2, 0, 60], [3, 0, 20]],
            [[3, 20, 70]],
        ],
        "opens": 6,
        "entries_decoded_range_stop": 310,
        "entries_decoded_whole": 380,
    }


@pytest.mark.parametrize(("entries", "batch_size"), [([10**12], 10**6), ([10**12, 5], 1)])
def test_more_ranges_than_fit_into_memory_are_refused(entries: list[int], batch_size: int) -> None:
    with pytest.raises(InputError, match=f"batch_size {batch_size}: .* ranges, expected 1,000,000 at most"):
        calculator.ranges(entries, batch_size)


@pytest.mark.parametrize(("tasks", "replicas"), [(10**400, 3), (1000, 10**400)])
def test_numbers_beyond_64_bits_are_refused(tasks: int, replicas: int) -> None:
    with pytest.raises(InputError, match="expected at most"):
        calculator.batching(tasks, 1, replicas)


def test_a_deeply_nested_payload_is_refused() -> None:
    nested: dict[str, object] = {}
    for _ in range(100_000):
        nested = {"not": nested}
    with pytest.raises(InputError, match="expected"):
        calculator.encode({"table": "t", "offset": 0, "limit": 1, "scan": {"snapshot-id": 1, "filter": nested}})
