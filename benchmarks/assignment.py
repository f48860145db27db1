"""Affinity ranking and greedy placement, side by side with plain Python implementations of the same rules.

Run with ``python benchmarks/assignment.py``. Both sides must give the same results. The plain ranking takes minutes
for 20,000 tasks, so that by default it ranks a sample of them and the time per task is compared; ``--plain-tasks
20000`` ranks all.
"""

from __future__ import annotations

import argparse
import heapq
import random
import statistics
import time
from collections.abc import Callable
from typing import Any

from planning_health.assignment import TaskHints, greedy_assignment, rank_workers

MASK = 2**64 - 1
Hints = list[tuple[str, int]]


def plain_round(v0: int, v1: int, v2: int, v3: int) -> tuple[int, int, int, int]:
    v0 = (v0 + v1) & MASK
    v1 = ((v1 << 13 | v1 >> 51) & MASK) ^ v0
    v0 = (v0 << 32 | v0 >> 32) & MASK
    v2 = (v2 + v3) & MASK
    v3 = ((v3 << 16 | v3 >> 48) & MASK) ^ v2
    v0 = (v0 + v3) & MASK
    v3 = ((v3 << 21 | v3 >> 43) & MASK) ^ v0
    v2 = (v2 + v1) & MASK
    v1 = ((v1 << 17 | v1 >> 47) & MASK) ^ v2
    v2 = (v2 << 32 | v2 >> 32) & MASK
    return v0, v1, v2, v3


def plain_siphash13(stream: bytes) -> int:
    v0, v1, v2, v3 = 0x736F6D6570736575, 0x646F72616E646F6D, 0x6C7967656E657261, 0x7465646279746573
    padded = stream + bytes(7 - len(stream) % 8) + bytes((len(stream) & 0xFF,))
    for at in range(0, len(padded), 8):
        word = int.from_bytes(padded[at : at + 8], "little")
        v0, v1, v2, v3 = plain_round(v0, v1, v2, v3 ^ word)
        v0 ^= word
    v2 ^= 0xFF
    for _ in range(3):
        v0, v1, v2, v3 = plain_round(v0, v1, v2, v3)
    return v0 ^ v1 ^ v2 ^ v3


def plain_rank(hints: Hints, workers: list[str]) -> list[tuple[str, int]]:
    weights: dict[bytes, int] = {}
    for key, weight in hints:
        if weight:
            stream = key.encode() + b"\xff"
            weights[stream] = max(weight, weights.get(stream, 0))
    urls = [worker.encode() + b"\xff" for worker in workers]
    scores = dict.fromkeys(workers, 0)
    for key, weight in weights.items():
        best = max(range(len(urls)), key=lambda index: plain_siphash13(key + urls[index]))
        scores[workers[best]] += weight
    key_set = plain_siphash13(b"".join(sorted(weights))).to_bytes(8, "little")
    prefix = b"affinity-score-tie\xff" + key_set
    ties = {worker: plain_siphash13(prefix + url) for worker, url in zip(workers, urls, strict=True)}
    return [(w, scores[w]) for w in sorted(workers, key=lambda w: (-scores[w], -ties[w], w))]


def bare_heap(costs: list[int], tasks: int) -> list[list[int]]:
    groups: list[list[int]] = [[] for _ in range(tasks)]
    heap = [(0, 0, task) for task in range(tasks)]
    for index in sorted(range(len(costs)), key=lambda i: (-costs[i], i)):
        load, count, task = heap[0]
        groups[task].append(index)
        heapq.heapreplace(heap, (load + costs[index], count + 1, task))
    return groups


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    started = time.perf_counter()
    result = work()
    return time.perf_counter() - started, result


def compare_ranking(tasks: int, plain_tasks: int, keys: int, workers: int, runs: int) -> None:
    rng = random.Random(7)  # noqa: S311
    work = [
        [(f"s3://bucket/db/t/data/f-{task * keys + key:08}.parquet", rng.randrange(1, 2**30)) for key in range(keys)]
        for task in range(tasks)
    ]
    urls = sorted(f"http://worker-{number}/" for number in range(workers))
    fast = [timed(lambda: rank_workers(TaskHints.of(work), urls)) for _ in range(runs)]
    seconds, ranking = statistics.median(second for second, _ in fast), fast[-1][1]
    plain_seconds, expected = timed(lambda: [plain_rank(hints, urls) for hints in work[:plain_tasks]])
    if [ranking.of_task(task) for task in range(plain_tasks)] != expected:
        raise SystemExit("the two rankings differ")
    per_task, plain_per_task = seconds / tasks, plain_seconds / plain_tasks
    print(f"ranking, {tasks} tasks x {keys} keys, {workers} workers: {seconds:.2f} s, median of {runs}")
    print(f"  plain Python: {plain_seconds:.2f} s for {plain_tasks} tasks, {plain_per_task / per_task:.0f} x as long")


def compare_greedy(units: int, tasks: int, runs: int) -> None:
    rng = random.Random(11)  # noqa: S311
    costs = [int(rng.lognormvariate(16, 2)) for _ in range(units)]
    ratios = []
    for _ in range(runs):  # alternating, so that both meet the same machine
        bare_seconds, groups = timed(lambda: bare_heap(costs, tasks))
        seconds, placed = timed(lambda: greedy_assignment(costs, tasks))
        if list(placed.groups) != groups:
            raise SystemExit("the two assignments differ")
        ratios.append(seconds / bare_seconds)
        print(f"greedy, {units} units on {tasks} tasks: {seconds:.2f} s, bare heapq loop {bare_seconds:.2f} s")
    print(f"  median ratio {statistics.median(ratios):.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tasks", type=int, default=20_000)
    parser.add_argument("--plain-tasks", type=int, default=400)
    parser.add_argument("--units", type=int, default=1_000_000)
    parser.add_argument("--runs", type=int, default=3)
    arguments = parser.parse_args()
    compare_ranking(arguments.tasks, min(arguments.plain_tasks, arguments.tasks), 10, 100, arguments.runs)
    compare_greedy(arguments.units, 1_000, arguments.runs)


if __name__ == "__main__":
    main()
