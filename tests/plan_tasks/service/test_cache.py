"""The plan cache: bounds, expiry after the last use, and one computation for concurrent requests."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planning_health.plan_tasks.service.cache import Found, PlanCache
from planning_health.plan_tasks.service.plan_ids import MAX_PLAN_IDS, PlanIds


@dataclass(frozen=True)
class Value:
    held_bytes: int


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def cache(max_bytes: int = 100, entries: int = 10, seconds: float = 60, clock: Clock | None = None) -> PlanCache[Value]:
    return PlanCache(max_bytes, entries, seconds, clock or Clock())


def test_a_value_is_computed_once() -> None:
    kept = cache()
    assert kept.get("a", lambda: Value(1)) == (Value(1), Found.COMPUTED)
    assert kept.get("a", lambda: Value(2)) == (Value(1), Found.HIT)


def test_what_was_used_longest_ago_makes_room() -> None:
    kept = cache(max_bytes=10)
    for key in "ab":
        kept.get(key, lambda: Value(5))
    kept.get("a", lambda: Value(5))
    kept.get("c", lambda: Value(5))
    assert kept.get("a", lambda: Value(5))[1] is Found.HIT
    assert kept.get("b", lambda: Value(5))[1] is Found.COMPUTED
    assert kept.evictions == 2


def test_a_value_beyond_the_limit_is_not_kept_and_evicts_nothing() -> None:
    kept = cache(max_bytes=10)
    kept.get("a", lambda: Value(10))
    kept.get("b", lambda: Value(11))
    assert (kept.held_bytes, len(kept), kept.evictions) == (10, 1, 0)


def test_a_value_expires_after_its_last_use() -> None:
    clock = Clock()
    kept = cache(seconds=60, clock=clock)
    kept.get("a", lambda: Value(7))
    clock.now = 59
    assert kept.get("a", lambda: Value(7))[1] is Found.HIT
    clock.now = 118
    assert kept.held_bytes == 7
    clock.now = 119
    assert (kept.held_bytes, len(kept)) == (0, 0)


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 60)), max_size=60), st.integers(0, 100), st.integers(0, 4))
def test_bytes_and_entries_never_exceed_their_bounds(uses: list[tuple[int, int]], max_bytes: int, entries: int) -> None:
    kept = cache(max_bytes, entries)
    for key, size in uses:
        kept.get(key, lambda size=size: Value(size))
        assert kept.held_bytes <= max_bytes
        assert len(kept) <= entries


def test_concurrent_requests_for_one_plan_compute_it_once() -> None:
    kept, computing, go_on, computed = cache(), threading.Event(), threading.Event(), []

    def compute() -> Value:
        computed.append(1)
        computing.set()
        assert go_on.wait(10)
        return Value(1)

    with ThreadPoolExecutor(20) as pool:
        first = pool.submit(kept.get, "a", compute)
        assert computing.wait(10)
        others = [pool.submit(kept.get, "a", compute) for _ in range(19)]
        assert kept.get("b", lambda: Value(2))[1] is Found.COMPUTED  # other plans do not wait
        go_on.set()
        assert first.result() == (Value(1), Found.COMPUTED)
        assert {other.result()[1] for other in others} <= {Found.COALESCED, Found.HIT}
    assert len(computed) == 1


def test_a_failure_is_shared_by_those_who_wait_and_not_kept() -> None:
    kept = cache()

    def fail() -> Value:
        raise ValueError("no plan")

    with pytest.raises(ValueError, match="no plan"):
        kept.get("a", fail)
    assert kept.get("a", lambda: Value(1))[1] is Found.COMPUTED


def test_a_released_value_is_gone() -> None:
    kept = cache()
    kept.get("a", lambda: Value(5))
    kept.release("a")
    kept.release("never there")
    assert kept.held_bytes == 0


def test_plan_ids_are_bounded_and_expire_after_their_last_use() -> None:
    clock = Clock()
    ids = PlanIds(60, clock)
    first = ids.add("t", "key", {})
    second = ids.add("t", "key", {})
    clock.now = 59
    assert ids.get(first) is not None
    clock.now = 61
    assert ids.get(second) is None
    assert ids.forget(first)
    oldest = ids.add("t", "key", {})
    for _ in range(MAX_PLAN_IDS):
        ids.add("t", "key", {})
    assert ids.get(oldest) is None
