"""Placing tasks on workers that may fail: retries, failover and what the router counts.

Source of the rules: ``AffinityRouteTaskHandler`` and the dialling policy of the Rust project
datafusion-distributed. Waiting is added up, nobody sleeps.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum

from planning_health.assignment.affinity import Ranking, TaskHints
from planning_health.assignment.units import MAX_U64


class Dial(StrEnum):
    """What came of one attempt to give a task to a worker."""

    ACCEPTED = "accepted"
    CONNECTION_ERROR = "connection_error"  # worth another attempt on the same worker
    REFUSED = "refused"  # overloaded: another worker may accept
    TERMINAL = "terminal"  # no worker can help


class PlacementKind(StrEnum):
    """Which worker accepted a task."""

    PREFERRED = "preferred"
    FALLBACK = "fallback"
    FAILED = "failed"


@dataclass(frozen=True)
class RetryPolicy:
    """Retries on the same worker after a connection error; the wait doubles up to its maximum, in seconds."""

    retries: int = 3
    first_wait: float = 0.1
    longest_wait: float = 1.0

    def wait(self, retry: int) -> float:
        """Seconds before the given retry, counted from 0."""
        return min(self.first_wait * 2.0**retry, self.longest_wait)


@dataclass(frozen=True)
class Placement:
    """Where a task ended.

    Attributes:
        kind: by the worker that accepted it.
        worker: that worker's URL; None when all attempts failed.
        dials: every worker dialled, in order.
        waited_seconds: back-off in all.
    """

    kind: PlacementKind
    worker: str | None
    dials: tuple[str, ...]
    waited_seconds: float


@dataclass
class AffinityMetrics:
    """What a router counts. A task that defers counts nowhere; nothing here says that data was cached."""

    attempts: int = 0
    preferred_placements: int = 0
    fallback_placements: int = 0
    failures: int = 0
    routing_seconds: float = 0.0
    hinted_objects: list[int] = field(default_factory=list)
    hinted_bytes: list[int] = field(default_factory=list)


class AffinityRouter:
    """Routes tasks along their rankings and keeps the metrics of doing so."""

    def __init__(self, hints: TaskHints, ranking: Ranking, policy: RetryPolicy = RetryPolicy()) -> None:
        self._hints = hints
        self._ranking = ranking
        self._policy = policy
        self.metrics = AffinityMetrics()

    def route(self, task: int, dial: Callable[[str], Dial]) -> Placement | None:
        """Places one task; None when it has no positive hint or there is no worker: ordinary routing takes over.

        Args:
            task: index of the task.
            dial: tries to give the task to the worker with this URL.
        """
        workers = [worker for worker, _ in self._ranking.of_task(task)]
        if not workers:
            return None
        started = time.perf_counter()
        placement = place(workers, dial, self._policy)
        metrics = self.metrics
        metrics.attempts += 1
        metrics.preferred_placements += placement.kind is PlacementKind.PREFERRED
        metrics.fallback_placements += placement.kind is PlacementKind.FALLBACK
        metrics.failures += placement.kind is PlacementKind.FAILED
        metrics.hinted_objects.append(self._hints.objects(task))
        metrics.hinted_bytes.append(min(MAX_U64, self._hints.bytes(task)))
        metrics.routing_seconds += time.perf_counter() - started + placement.waited_seconds
        return placement


def place(workers: list[str], dial: Callable[[str], Dial], policy: RetryPolicy) -> Placement:
    """Dials the workers, best first, until one accepts.

    A connection error is retried on the same worker; when its retries are used up, or when a worker refuses, the next
    one is dialled. A terminal error ends the attempt.
    """
    dials: list[str] = []
    waited = 0.0
    for worker in workers:
        for retry in range(policy.retries + 1):
            dials.append(worker)
            outcome = dial(worker)
            if outcome is Dial.ACCEPTED:
                kind = PlacementKind.PREFERRED if worker == workers[0] else PlacementKind.FALLBACK
                return Placement(kind, worker, tuple(dials), waited)
            if outcome is Dial.TERMINAL:
                return Placement(PlacementKind.FAILED, None, tuple(dials), waited)
            if outcome is Dial.REFUSED or retry == policy.retries:
                break
            waited += policy.wait(retry)
    return Placement(PlacementKind.FAILED, None, tuple(dials), waited)
