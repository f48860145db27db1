"""The JSON documents of ``planning-health assign``."""

from __future__ import annotations

import json

import pytest

from planning_health.assignment import AFFINITY_LIMITS, BALANCE_LIMITS, calculator, collect_units
from planning_health.errors import InputError


def test_greedy_document_lists_indexes_per_task() -> None:
    document = calculator.assign_costs([100, 1, 2, 3], 2, "greedy")
    assert document == {
        "assignment": [[0], [3, 2, 1]],
        "loads": [100, 6],
        "makespan": 100,
        "lower_bound": 100,
        "skew": 100 / 53,
        "memory": {"retained_bytes": 160, "scratch_bytes": 192},
        "limits": list(BALANCE_LIMITS),
    }
    json.dumps(document)


def test_default_document_lists_indexes_per_feed_and_loads_per_task() -> None:
    document = calculator.assign_costs([1, 2, 3, 4, 5, 6, 7], 3, "default", 2)
    assert document["assignment"] == [[0, 6], [3], [1], [4], [2], [5]]
    assert document["loads"] == [12, 7, 9]


def test_greedy_orders_units_by_path_and_default_deals_them_as_they_were_found() -> None:
    units = collect_units([("c", 1, None), ("a", 5, None), ("b", 3, None)])
    document = calculator.assign_units(units, 2, "greedy")
    assert document["files"] == ["a", "b", "c"]
    assert (document["assignment"], document["loads"]) == ([[0], [1, 2]], [5, 4])
    dealt = calculator.assign_units(units, 2)
    assert (dealt["assignment"], dealt["files"], dealt["loads"]) == ([[0, 2], [1]], ["c", "a", "b"], [4, 5])


def test_skew_is_null_without_load() -> None:
    assert calculator.assign_costs([], 2)["skew"] is None


def test_an_unknown_strategy_names_itself_and_the_choices() -> None:
    with pytest.raises(InputError, match="strategy 'fair': expected default or greedy"):
        calculator.assign_costs([1], 1, "fair")


def test_affinity_document() -> None:
    hints = [
        {"task": "t0", "hints": [["a", 100], ["a", 20], ["b", 50], ["b", 50], ["zero", 0]]},
        {"task": 1, "hints": []},
    ]
    document = calculator.assign_affinity(hints, ["http://worker-2", "http://worker-0", "http://worker-1"])
    first, second = document["tasks"]
    assert first["ranking"] == [
        {"worker": "http://worker-0/", "score": 100},
        {"worker": "http://worker-1/", "score": 50},
        {"worker": "http://worker-2/", "score": 0},
    ]
    assert (first["task"], first["hinted_objects"], first["hinted_bytes"]) == ("t0", 2, 150)
    assert second == {"task": 1, "ranking": [], "hinted_objects": 0, "hinted_bytes": 0}
    assert document["preferred"] == {"http://worker-0/": 1, "http://worker-1/": 0, "http://worker-2/": 0}
    assert document["limits"] == list(AFFINITY_LIMITS)
    json.dumps(document)


@pytest.mark.parametrize(
    "document",
    [
        {},
        None,
        [1],
        [{"hints": []}],
        [{"task": 1}],
        [{"task": 1, "hints": {}}],
        [{"task": 1, "hints": [["a"]]}],
        [{"task": 1, "hints": [["a", 1.5]]}],
        [{"task": 1, "hints": [["a", True]]}],
        [{"task": 1, "hints": [[1, 1]]}],
        [{"task": 1, "hints": [["a", -1]]}],
        [{"task": 1, "hints": [["\ud800", 1]]}],
    ],
)
def test_a_hints_document_of_another_shape_is_refused(document: object) -> None:
    with pytest.raises(InputError, match="expected"):
        calculator.assign_affinity(document, ["http://worker-0"])


def test_estimate_document() -> None:
    assert calculator.estimate(4480382, 2, 7, 4, 1_000_000) == {"tasks": 3}


def test_integers_are_read_from_text() -> None:
    assert calculator.parse_integers("100, 1,2 ,18446744073709551615", "costs") == [100, 1, 2, 2**64 - 1]
    assert calculator.parse_integers("", "costs") == []


@pytest.mark.parametrize("text", ["1,x", "1,,2", "1.5", "１,٢", "1_000", "1" * 5000])
def test_text_that_is_no_integer_is_named(text: str) -> None:
    with pytest.raises(InputError, match=r"costs '.*': expected integers separated by commas"):
        calculator.parse_integers(text, "costs")


def test_no_output_claims_a_cache_hit() -> None:
    for text in (*AFFINITY_LIMITS, *BALANCE_LIMITS):
        assert "hit" not in text.lower().replace("white", "")


@pytest.mark.parametrize(("tasks", "partitions"), [(10**12, 1), (1, 10**12), (1001, 1000)])
@pytest.mark.parametrize("strategy", ["default", "greedy"])
def test_more_feeds_than_fit_into_memory_are_refused(tasks: int, partitions: int, strategy: str) -> None:
    with pytest.raises(InputError, match=f"tasks {tasks} x partitions {partitions}: expected at most 1,000,000"):
        calculator.assign_costs([1], tasks, strategy, partitions)


def test_a_deeply_nested_hint_is_refused() -> None:
    nested: list[object] = []
    for _ in range(100_000):
        nested = [nested]
    with pytest.raises(InputError, match="expected"):
        calculator.assign_affinity(nested, ["http://worker-0"])
