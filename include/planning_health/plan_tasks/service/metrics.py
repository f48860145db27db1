"""The service's own metrics, in Prometheus format."""

from __future__ import annotations

from typing import Any, Protocol

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest


class _Watched(Protocol):
    evictions: int

    @property
    def held_bytes(self) -> int: ...

    def __len__(self) -> int: ...


class ServiceMetrics:
    """Counters of one application; each has a registry of its own, so that two can live in one process."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        common: dict[str, Any] = {"namespace": "planning_health_serve", "registry": self.registry}
        self.requests = Counter("requests", "Requests answered.", ["method", "route", "status"], **common)
        self.request_seconds = Histogram("request_seconds", "Time to answer.", ["route"], **common)
        self.plans = Counter(
            "plans", "Whole plans by how they were come by: computed, hit, coalesced.", ["found"], **common
        )
        self.planning_seconds = Histogram("planning_seconds", "Time to compute a whole plan.", **common)
        self.tasks = Counter("file_scan_tasks", "File scan tasks sent.", **common)
        self.fallbacks = Counter(
            "entry_range_fallbacks", "Plans with offset tokens, because delete manifests apply.", **common
        )
        self._held_bytes = Gauge("cache_held_bytes", "Bytes of cached plans.", **common)
        self._entries = Gauge("cache_plans", "Cached plans.", **common)
        self._evictions = Gauge("cache_evictions", "Plans that made room for others, since the start.", **common)
        for found in ("computed", "hit", "coalesced"):
            self.plans.labels(found)

    def watch(self, cache: _Watched) -> None:
        """Reads a cache's size whenever the metrics are asked for."""
        self._held_bytes.set_function(lambda: cache.held_bytes)
        self._entries.set_function(lambda: len(cache))
        self._evictions.set_function(lambda: cache.evictions)

    def exposition(self) -> bytes:
        """All metrics as text."""
        return generate_latest(self.registry)
