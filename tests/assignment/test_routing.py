"""Retries, failover and the counters of affinity routing."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from planning_health.assignment import AffinityRouter, AssignmentOptions, Dial, PlacementKind, TaskHints, rank_workers
from planning_health.errors import InputError

WORKERS = [f"http://worker-{i}" for i in range(3)]
HINTS = TaskHints.of([[("a", 100), ("a", 20), ("b", 50), ("b", 50), ("zero", 0)]])


def scripted(*outcomes: Dial) -> Callable[[str], Dial]:
    script = iter(outcomes)
    return lambda _: next(script, Dial.ACCEPTED)


@pytest.mark.parametrize(
    ("outcomes", "kind", "counters", "dials"),
    [
        ([], PlacementKind.PREFERRED, (1, 1, 0, 0), 1),
        ([Dial.CONNECTION_ERROR], PlacementKind.PREFERRED, (1, 1, 0, 0), 2),
        ([Dial.CONNECTION_ERROR] * 3, PlacementKind.PREFERRED, (1, 1, 0, 0), 4),
        ([Dial.CONNECTION_ERROR] * 4, PlacementKind.FALLBACK, (1, 0, 1, 0), 5),
        ([Dial.REFUSED], PlacementKind.FALLBACK, (1, 0, 1, 0), 2),
        ([Dial.REFUSED] * 3, PlacementKind.FAILED, (1, 0, 0, 1), 3),
        ([Dial.TERMINAL], PlacementKind.FAILED, (1, 0, 0, 1), 1),
    ],
)
def test_placements_are_counted_by_the_worker_that_accepted(
    outcomes: list[Dial], kind: PlacementKind, counters: tuple[int, ...], dials: int
) -> None:
    router = AffinityRouter(HINTS, rank_workers(HINTS, WORKERS))
    placement = router.route(0, scripted(*outcomes))
    metrics = router.metrics
    assert placement is not None
    assert (placement.kind, len(placement.dials)) == (kind, dials)
    counted = (metrics.attempts, metrics.preferred_placements, metrics.fallback_placements, metrics.failures)
    assert counted == counters
    assert (metrics.hinted_objects, metrics.hinted_bytes) == ([2], [150])
    assert metrics.routing_seconds >= placement.waited_seconds


def test_a_connection_error_waits_100_ms_doubling_up_to_a_second() -> None:
    router = AffinityRouter(HINTS, rank_workers(HINTS, WORKERS))
    placement = router.route(0, scripted(*[Dial.CONNECTION_ERROR] * 12))
    assert placement is not None
    assert placement.waited_seconds == pytest.approx(3 * (0.1 + 0.2 + 0.4))
    assert [router._policy.wait(retry) for retry in range(6)] == pytest.approx([0.1, 0.2, 0.4, 0.8, 1.0, 1.0])


def test_failover_follows_the_ranking() -> None:
    ranking = rank_workers(HINTS, WORKERS)
    best = [worker for worker, _ in ranking.of_task(0)]
    placement = AffinityRouter(HINTS, ranking).route(0, scripted(Dial.REFUSED, Dial.REFUSED))
    assert placement is not None
    assert placement.dials == tuple(best)
    assert placement.worker == best[2]


def test_a_deferred_task_counts_nowhere() -> None:
    for hints, workers in ((TaskHints.of([[]]), WORKERS), (TaskHints.of([[("zero", 0)]]), WORKERS), (HINTS, [])):
        router = AffinityRouter(hints, rank_workers(hints, workers))
        assert router.route(0, scripted()) is None
        assert (router.metrics.attempts, router.metrics.hinted_objects) == (0, [])


def test_hinted_bytes_saturate_per_route() -> None:
    hints = TaskHints.of([[("a", 2**64 - 1), ("b", 1)]])
    router = AffinityRouter(hints, rank_workers(hints, WORKERS))
    router.route(0, scripted())
    assert router.metrics.hinted_bytes == [2**64 - 1]


def test_balancing_is_off_by_default() -> None:
    options = AssignmentOptions()
    assert (options.plan_files, options.greedy_file_assignment, options.file_task_affinity) == (True, False, False)


@pytest.mark.parametrize("option", ["greedy_file_assignment", "file_task_affinity"])
def test_balancing_needs_planned_files(option: str) -> None:
    with pytest.raises(InputError, match=f"{option}=true with plan_files=false: expected plan_files=true"):
        AssignmentOptions(plan_files=False, **{option: True})


def test_the_planning_limit_must_be_positive() -> None:
    with pytest.raises(InputError, match="planning_max_files 0"):
        AssignmentOptions(planning_max_files=0)
