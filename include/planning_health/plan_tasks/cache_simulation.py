"""Replicas, clients and plan caches, event by event: what the closed form leaves out.

Clients fetch one scan's batches concurrently, a plan takes time, so that requests arrive while it is computed; caches
are bounded by bytes and entries and evict the plan that was used longest ago. Nothing is measured here: times are
model inputs.
"""

from __future__ import annotations

import heapq
import random
from collections import OrderedDict
from dataclasses import dataclass, field
from enum import StrEnum
from statistics import fmean

from planning_health.errors import InputError
from planning_health.plan_tasks.cache_model import CACHE_ENTRIES, CACHE_EXPIRY_SECONDS


class Routing(StrEnum):
    """How the load balancer picks a replica for a request."""

    UNIFORM = "uniform"
    ROUND_ROBIN = "round_robin"
    AFFINITY = "affinity"  # all requests of one scan reach one replica


class CacheKind(StrEnum):
    """Where computed plans are kept."""

    NONE = "none"
    LOCAL = "local"  # one per replica
    SHARED = "shared"  # one for all replicas


@dataclass(frozen=True)
class Load:
    """What the clients do.

    Attributes:
        requests_per_scan: the plan request and its tokens.
        scans: scans that start together.
        client_threads: requests that one client has under way after its plan request came back.
        distinct_plans: how many different plans the scans ask for; scan i asks for plan i modulo this number.
        plan_bytes: what one cached plan holds.

    Raises:
        InputError: a number below its least value.
    """

    requests_per_scan: int
    scans: int = 1
    client_threads: int = 1
    distinct_plans: int = 1
    plan_bytes: int = 0

    def __post_init__(self) -> None:
        for name in ("requests_per_scan", "scans", "client_threads", "distinct_plans"):
            if getattr(self, name) < 1:
                raise InputError(f"{name} {getattr(self, name)}: expected at least 1")


@dataclass(frozen=True)
class Service:
    """How the replicas answer.

    Attributes:
        replicas: number of processes.
        routing: how requests are spread.
        cache: where plans are kept.
        coalesce: whether a request waits for the same plan that its replica is already computing.
        plan_seconds: time to compute a plan.
        slice_seconds: time to cut a batch from a plan at hand.
        capacity_bytes: limit of one cache; None for no limit by bytes.
        capacity_entries: limit of one cache in plans.
        expiry_seconds: how long a plan stays after its last use.

    Raises:
        InputError: there is no replica.
    """

    replicas: int
    routing: Routing = Routing.UNIFORM
    cache: CacheKind = CacheKind.LOCAL
    coalesce: bool = False
    plan_seconds: float = 1.0
    slice_seconds: float = 0.01
    capacity_bytes: int | None = None
    capacity_entries: int = CACHE_ENTRIES
    expiry_seconds: float = CACHE_EXPIRY_SECONDS

    def __post_init__(self) -> None:
        if self.replicas < 1:
            raise InputError(f"replicas {self.replicas}: expected at least 1")


@dataclass
class Outcome:
    """What one simulated run counted.

    Attributes:
        requests: requests answered.
        plans_computed: plans computed on all replicas.
        cache_hits: requests served from a cache.
        coalesced: requests that waited for a plan under way.
        evictions: plans dropped for bytes or entries.
        peak_cache_bytes: the most that any one cache held.
        seconds: when the last client was done.
    """

    requests: int = 0
    plans_computed: int = 0
    cache_hits: int = 0
    coalesced: int = 0
    evictions: int = 0
    peak_cache_bytes: int = 0
    seconds: float = 0.0


@dataclass
class _Cache:
    """Plans by key with the time of their last use, least recently used first."""

    service: Service
    plan_bytes: int
    used: OrderedDict[int, float] = field(default_factory=OrderedDict)

    def get(self, key: int, now: float) -> bool:
        last = self.used.pop(key, None)
        if last is None or now - last > self.service.expiry_seconds:
            return False
        self.used[key] = now
        return True

    def put(self, key: int, now: float, outcome: Outcome) -> None:
        limit = self.service.capacity_bytes
        if self.service.cache is CacheKind.NONE or (limit is not None and self.plan_bytes > limit):
            return
        self.used.pop(key, None)
        while self.used and not self._fits_one_more(limit):
            self.used.popitem(last=False)
            outcome.evictions += 1
        self.used[key] = now
        outcome.peak_cache_bytes = max(outcome.peak_cache_bytes, len(self.used) * self.plan_bytes)

    def _fits_one_more(self, limit: int | None) -> bool:
        count = len(self.used) + 1
        return count <= self.service.capacity_entries and (limit is None or count * self.plan_bytes <= limit)


@dataclass
class _Run:
    """One run: the queue of events and the state of caches and clients."""

    load: Load
    service: Service
    rng: random.Random
    outcome: Outcome = field(default_factory=Outcome)
    events: list[tuple[float, int, str, int, int]] = field(default_factory=list)
    caches: list[_Cache] = field(default_factory=list)
    waiting: dict[tuple[int, int], list[int]] = field(default_factory=dict)
    unsent: list[int] = field(default_factory=list)
    sequence: int = 0
    turn: int = 0

    def finish(self) -> Outcome:
        self.caches = [_Cache(self.service, self.load.plan_bytes) for _ in range(self.service.replicas)]
        self.unsent = [self.load.requests_per_scan] * self.load.scans
        for scan in range(self.load.scans):
            self._send(0.0, scan)
        handlers = {"request": self._request, "planned": self._planned, "answer": self._answer}
        while self.events:
            now, _, kind, first, second = heapq.heappop(self.events)
            handlers[kind](now, first, second)
        return self.outcome

    def _schedule(self, at: float, kind: str, first: int, second: int) -> None:
        heapq.heappush(self.events, (at, self.sequence, kind, first, second))
        self.sequence += 1

    def _send(self, now: float, scan: int) -> None:
        if self.unsent[scan]:
            self.unsent[scan] -= 1
            self._schedule(now, "request", scan, self._route(scan))

    def _route(self, scan: int) -> int:
        match self.service.routing:
            case Routing.AFFINITY:
                return self._key(scan) % self.service.replicas
            case Routing.ROUND_ROBIN:
                self.turn += 1
                return self.turn % self.service.replicas
            case Routing.UNIFORM:
                return self.rng.randrange(self.service.replicas)

    def _key(self, scan: int) -> int:
        return scan % self.load.distinct_plans

    def _cache_of(self, replica: int) -> int:
        return 0 if self.service.cache is CacheKind.SHARED else replica

    def _request(self, now: float, scan: int, replica: int) -> None:
        key, cache = self._key(scan), self._cache_of(replica)
        self.outcome.requests += 1
        if self.caches[cache].get(key, now):
            self.outcome.cache_hits += 1
            self._schedule(now + self.service.slice_seconds, "answer", scan, 0)
        elif self.service.coalesce and (cache, key) in self.waiting:
            self.outcome.coalesced += 1
            self.waiting[cache, key].append(scan)
        else:
            self.outcome.plans_computed += 1
            self._start_plan(now, scan, cache, key)

    def _start_plan(self, now: float, scan: int, cache: int, key: int) -> None:
        done = now + self.service.plan_seconds
        self._schedule(done, "planned", cache, key)
        if self.service.coalesce:
            self.waiting[cache, key] = [scan]
        else:
            self._schedule(done + self.service.slice_seconds, "answer", scan, 0)

    def _planned(self, now: float, cache: int, key: int) -> None:
        self.caches[cache].put(key, now, self.outcome)
        for scan in self.waiting.pop((cache, key), ()):
            self._schedule(now + self.service.slice_seconds, "answer", scan, 0)

    def _answer(self, now: float, scan: int, _: int) -> None:
        self.outcome.seconds = now
        was_plan_request = self.unsent[scan] == self.load.requests_per_scan - 1
        for _ in range(self.load.client_threads if was_plan_request else 1):
            self._send(now, scan)


def simulate(load: Load, service: Service, seed: int = 0) -> Outcome:
    """Runs the clients against the service once; the same seed gives the same outcome."""
    return _Run(load, service, random.Random(seed)).finish()  # noqa: S311 - a model, no secret


def mean_plans_computed(load: Load, service: Service, runs: int = 200, seed: int = 0) -> float:
    """Plans computed, averaged over runs with consecutive seeds."""
    return fmean(simulate(load, service, seed + run).plans_computed for run in range(runs))
