"""Plans computed on replicas: the closed form, and the simulation that must agree with it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planning_health.errors import InputError
from planning_health.plan_tasks import (
    CACHE_ENTRIES,
    CACHE_EXPIRY_SECONDS,
    CacheKind,
    Load,
    Routing,
    Service,
    mean_plans_computed,
    plan_bytes,
    plans_computed,
    simulate,
)


@pytest.mark.parametrize(
    ("requests", "replicas", "expected"),
    [
        (10, 1, 1),
        (10, 2, 1.998),
        (10, 3, 2.948),
        (10, 4, 3.7747),
        (10, 10, 6.5132),
        (100, 1, 1),
        (100, 2, 2),
        (100, 3, 3),
        (100, 4, 4),
        (100, 10, 9.9997),
    ],
)
def test_expected_plans_with_node_local_caches(requests: int, replicas: int, expected: float) -> None:
    computed = plans_computed(requests, replicas)
    assert computed.local_cache_expected == pytest.approx(expected, abs=5e-5)
    assert (computed.no_cache, computed.affinity_cache) == (requests, 1)
    assert computed.bound == min(requests, replicas)


@given(st.integers(1, 10**6), st.integers(1, 10**6))
def test_the_expectation_lies_between_one_and_the_bound(requests: int, replicas: int) -> None:
    computed = plans_computed(requests, replicas)
    assert 1 <= computed.local_cache_expected <= computed.bound * (1 + 1e-9)


@pytest.mark.parametrize(("requests", "replicas"), [(0, 1), (1, 0)])
def test_no_request_or_replica_is_an_error(requests: int, replicas: int) -> None:
    with pytest.raises(InputError, match="0: expected at least 1"):
        plans_computed(requests, replicas)


def test_a_cached_plan_of_100_000_tasks_holds_300_mb() -> None:
    assert plan_bytes(100_000) == 300_000_000


def test_cache_defaults() -> None:
    assert (CACHE_ENTRIES, CACHE_EXPIRY_SECONDS) == (200, 3600)


@pytest.mark.parametrize(("requests", "replicas"), [(10, 2), (10, 3), (10, 10), (100, 4), (3, 5), (1, 4)])
def test_sequential_requests_agree_with_the_closed_form(requests: int, replicas: int) -> None:
    mean = mean_plans_computed(Load(requests), Service(replicas), runs=400)
    assert mean == pytest.approx(plans_computed(requests, replicas).local_cache_expected, abs=0.12)


def test_one_replica_shared_cache_and_affinity_compute_one_plan() -> None:
    load = Load(50, client_threads=8)
    for service in (
        Service(1),
        Service(5, cache=CacheKind.SHARED),
        Service(5, routing=Routing.AFFINITY),
    ):
        outcome = simulate(load, service)
        assert (outcome.plans_computed, outcome.requests, outcome.cache_hits) == (1, 50, 49)


def test_without_a_cache_every_request_plans() -> None:
    assert simulate(Load(37, client_threads=4), Service(3, cache=CacheKind.NONE)).plans_computed == 37


def test_concurrent_misses_exceed_the_expectation_unless_coalesced() -> None:
    load = Load(100, client_threads=32)
    plain = mean_plans_computed(load, Service(4), runs=20)
    coalesced = mean_plans_computed(load, Service(4, coalesce=True), runs=20)
    assert plain > plans_computed(100, 4).bound
    assert coalesced == pytest.approx(plans_computed(100, 4).local_cache_expected, abs=0.05)


@given(
    st.integers(1, 30),
    st.integers(1, 4),
    st.integers(1, 8),
    st.integers(1, 3),
    st.integers(1, 5),
    st.sampled_from(Routing),
    st.sampled_from(CacheKind),
    st.booleans(),
    st.none() | st.integers(0, 25),
    st.integers(0, 5),
)
def test_every_request_is_answered_and_accounted_for(
    requests, scans, threads, distinct, replicas, routing, cache, coalesce, capacity, seed
) -> None:
    load = Load(requests, scans, threads, distinct, plan_bytes=10)
    service = Service(replicas, routing, cache, coalesce, capacity_bytes=capacity)
    outcome = simulate(load, service, seed)
    assert outcome.requests == requests * scans
    assert outcome.requests == outcome.plans_computed + outcome.cache_hits + outcome.coalesced
    assert outcome.plans_computed >= min(distinct, scans)
    if capacity is not None:
        assert outcome.peak_cache_bytes <= capacity
    if coalesce and capacity is None and cache is not CacheKind.NONE:
        assert outcome.plans_computed <= min(distinct, scans) * (1 if cache is CacheKind.SHARED else replicas)
    assert simulate(load, service, seed) == outcome


def test_a_cache_smaller_than_the_plans_in_use_evicts_and_plans_again() -> None:
    load = Load(50, scans=3, distinct_plans=3, plan_bytes=100)
    roomy = simulate(load, Service(1, capacity_bytes=300))
    tight = simulate(load, Service(1, capacity_bytes=200))
    assert (roomy.plans_computed, roomy.evictions, roomy.peak_cache_bytes) == (3, 0, 300)
    assert tight.plans_computed > 3
    assert tight.evictions > 0
    assert tight.peak_cache_bytes == 200


def test_a_plan_larger_than_the_cache_is_computed_for_every_request() -> None:
    outcome = simulate(Load(10, plan_bytes=101), Service(1, capacity_bytes=100))
    assert (outcome.plans_computed, outcome.peak_cache_bytes) == (10, 0)


def test_plans_expire_after_their_last_use() -> None:
    # The answer comes after the slice; a cache that forgets within that time never hits.
    assert simulate(Load(5), Service(1, slice_seconds=2.0, expiry_seconds=1.0)).plans_computed == 5
    assert simulate(Load(5), Service(1, slice_seconds=2.0, expiry_seconds=2.0)).plans_computed == 1


def test_200_concurrent_scans_on_three_replicas_with_and_without_affinity() -> None:
    load = Load(11, scans=200, client_threads=4, distinct_plans=200, plan_bytes=1)
    affinity = simulate(load, Service(3, Routing.AFFINITY, coalesce=True, capacity_entries=300))
    uniform = simulate(load, Service(3, Routing.UNIFORM, coalesce=True, capacity_entries=300))
    assert affinity.plans_computed == 200
    expected = 200 * plans_computed(11, 3).local_cache_expected
    assert uniform.plans_computed == pytest.approx(expected, rel=0.05)


@pytest.mark.parametrize("name", ["requests_per_scan", "scans", "client_threads", "distinct_plans"])
def test_a_load_needs_positive_numbers(name: str) -> None:
    with pytest.raises(InputError, match=f"{name} 0"):
        Load(**{"requests_per_scan": 1, name: 0})


def test_a_service_needs_a_replica() -> None:
    with pytest.raises(InputError, match="replicas 0"):
        Service(0)
