"""Routing tasks towards the workers that are the homes of their files: rendezvous hashing with weights.

Source of the rules: ``AffinityRouteTaskHandler`` of the Rust project datafusion-distributed. Every file elects one
worker; a task prefers the worker that owns most of its weight; ties follow a hash of the task's set of files, so that
no worker is favoured for its URL. Query ids, task ids and the order in which workers are listed have no influence.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import SplitResult, quote, urlsplit, urlunsplit

import numpy as np
import numpy.typing as npt

from planning_health.assignment.siphash import U64Array, integer_bytes, owners, pair_hashes, siphash13, string_bytes
from planning_health.assignment.units import MAX_U64
from planning_health.errors import InputError

Hint = tuple[str, int]
"""An immutable file path and its weight in bytes."""

_TIE = "affinity-score-tie"
_DEFAULT_PORTS = {"http": 80, "https": 443, "ws": 80, "wss": 443, "ftp": 21}
_LOW = np.uint64(0xFFFFFFFF)
_CELLS = 1 << 22  # scores held at once, tasks times workers


@dataclass(frozen=True)
class TaskHints:
    """The deduplicated hints of many tasks in compressed rows: task i has the entries from offset i to i + 1.

    Attributes:
        keys: the distinct files of all tasks, ascending by UTF-8 bytes.
        offsets: where each task's entries begin; one more than there are tasks.
        entries: index into ``keys`` per entry, ascending within a task.
        weights: positive weight per entry.
    """

    keys: tuple[str, ...]
    offsets: npt.NDArray[np.int64]
    entries: npt.NDArray[np.int64]
    weights: U64Array

    @classmethod
    def of(cls, tasks: Sequence[Iterable[Hint]]) -> TaskHints:
        """Collects the hints of each task. Zero weights are dropped; a repeated key counts once, with its largest one.

        Raises:
            InputError: a weight is outside 0 … 2^64 - 1.
        """
        distinct = [_distinct_weights(hints) for hints in tasks]
        keys = tuple(sorted({key for weights in distinct for key in weights}, key=str.encode))
        rank = {key: index for index, key in enumerate(keys)}
        offsets = np.zeros(len(distinct) + 1, dtype=np.int64)
        np.cumsum([len(weights) for weights in distinct], out=offsets[1:])
        pairs = [pair for weights in distinct for pair in sorted((rank[key], weights[key]) for key in weights)]
        entries = np.fromiter((entry for entry, _ in pairs), dtype=np.int64, count=len(pairs))
        return cls(keys, offsets, entries, np.array([weight for _, weight in pairs], dtype=np.uint64))

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def objects(self, task: int) -> int:
        """How many distinct files a task is hinted at."""
        return int(self.offsets[task + 1] - self.offsets[task])

    def bytes(self, task: int) -> int:
        """The weight of a task's distinct files, exact."""
        return sum(self.weights[self.offsets[task] : self.offsets[task + 1]].tolist())


@dataclass(frozen=True)
class Ranking:
    """How tasks rank the workers, best first. A task without a positive hint has no ranking and defers.

    Attributes:
        workers: normalised URLs, ascending, without duplicates.
        order: indexes into ``workers``, one row per task.
        high: upper part of the weight owned per worker (columns as in ``workers``), one row per task; see ``score``.
        low: its lower 32 bits; together they are exact beyond 64 bits.
        hinted: whether the task has a ranking.
        home: index into ``workers`` of each of the hints' keys; -1 without workers.
    """

    workers: tuple[str, ...]
    order: npt.NDArray[np.int64]
    high: U64Array
    low: U64Array
    hinted: npt.NDArray[np.bool_]
    home: npt.NDArray[np.int64]

    def score(self, task: int, worker: int) -> int:
        """The weight of the task's files whose home the worker is."""
        return (int(self.high[task, worker]) << 32) + int(self.low[task, worker])

    def of_task(self, task: int) -> list[tuple[str, int]]:
        """(worker, score) best first; empty when the task defers to ordinary routing."""
        if not self.workers or not self.hinted[task]:
            return []
        return [(self.workers[index], self.score(task, index)) for index in self.order[task].tolist()]

    def preferred(self) -> npt.NDArray[np.int64]:
        """Index of each task's preferred worker; -1 when it defers."""
        if not self.workers:
            return np.full(len(self.hinted), -1, dtype=np.int64)
        return np.where(self.hinted, self.order[:, 0], -1)

    def preferred_counts(self) -> dict[str, int]:
        """How many tasks prefer each worker."""
        preferred = self.preferred()
        counts = np.bincount(preferred[preferred >= 0], minlength=len(self.workers))
        return dict(zip(self.workers, counts.tolist(), strict=True))


@dataclass(frozen=True)
class HomeShare:
    """How much of the work runs where its files are at home.

    Attributes:
        at_home_bytes: bytes of files whose home is the preferred worker of their task.
        total_bytes: bytes of all hinted files, per task.
        fraction: their ratio; None when there are no bytes.
    """

    at_home_bytes: int
    total_bytes: int

    @property
    def fraction(self) -> float | None:
        """Share of bytes at home; None when nothing was hinted."""
        return self.at_home_bytes / self.total_bytes if self.total_bytes else None


@dataclass(frozen=True)
class MembershipChange:
    """What a worker's leaving or joining moves.

    Attributes:
        worker: the worker that left or joined.
        moved_keys: files whose home is another one now.
        moved_bytes: their bytes, each file counted once with its largest weight.
        moved_tasks: tasks whose preferred worker is another one now.
        share: the share of bytes at home when tasks follow their new preference.
        at_old_home: the share of bytes that tasks now read on the worker that was the file's home before the change.
    """

    worker: str
    moved_keys: int
    moved_bytes: int
    moved_tasks: int
    share: HomeShare
    at_old_home: HomeShare


def normalise_url(url: str) -> str:
    """A worker's URL as it is hashed: scheme and host in lower case, no default port, at least the path ``/``.

    The part of the WHATWG URL rules that worker addresses need, as Rust's ``Url`` applies them.

    Raises:
        InputError: it is not an absolute URL with a host.
    """
    try:
        parts = urlsplit(url.strip())
        port = parts.port
    except ValueError as error:
        raise InputError(f"worker {url!r}: expected an absolute URL such as http://worker-0:8080 ({error})") from None
    if not parts.scheme or not parts.hostname:
        raise InputError(f"worker {url!r}: expected an absolute URL such as http://worker-0:8080")
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    user, at, _ = parts.netloc.rpartition("@")
    suffix = "" if port is None or port == _DEFAULT_PORTS.get(parts.scheme) else f":{port}"
    path = quote(parts.path, safe="/%:@!$&'()*+,;=~-._[]|^") or "/"
    return urlunsplit(SplitResult(parts.scheme, f"{user}{at}{host}{suffix}", path, parts.query, parts.fragment))


def normalise_workers(urls: Iterable[str]) -> tuple[str, ...]:
    """Normalised URLs, ascending, without duplicates.

    Raises:
        InputError: one of them is not an absolute URL.
    """
    return tuple(sorted({normalise_url(url) for url in urls}, key=str.encode))


def rank_workers(hints: TaskHints, workers: Iterable[str]) -> Ranking:
    """Ranks all workers for all tasks: score descending, tie hash descending, URL ascending.

    Args:
        hints: the files of each task.
        workers: URLs in any order; normalised here.

    Raises:
        InputError: a worker is not an absolute URL.
    """
    urls = normalise_workers(workers)
    hinted = np.diff(hints.offsets) > 0
    shape = (len(hints), len(urls))
    if not urls or not hints.keys:
        empty = np.zeros(shape, dtype=np.uint64)
        homes = np.full(len(hints.keys), -1, dtype=np.int64)
        return Ranking(urls, np.zeros(shape, dtype=np.int64), empty, empty, hinted, homes)
    home = owners(hints.keys, urls)
    high, low = _scores(hints, home, len(urls))
    order = np.lexsort((~low, ~high), axis=-1)  # stable, so that URLs stay ascending
    tied = np.flatnonzero(_has_equal_scores(high, low, order))
    step = max(1, _CELLS // len(urls))
    for at in range(0, len(tied), step):
        rows = tied[at : at + step]
        # Ascending on the complements is descending on the values.
        order[rows] = np.lexsort((~_tie_hashes(hints, rows, urls), ~low[rows], ~high[rows]), axis=-1)
    return Ranking(urls, order, high, low, hinted, home)


def home_share(hints: TaskHints, ranking: Ranking) -> HomeShare:
    """The bytes that tasks read at the homes of their files when every task runs on its preferred worker."""
    return _share_at(hints, ranking.home, ranking.preferred())


def membership_change(hints: TaskHints, before: Ranking, after: Ranking) -> MembershipChange:
    """Compares two rankings of the same tasks whose workers differ by one that left or joined.

    Raises:
        InputError: the sets of workers do not differ by exactly one, or one of them is empty.
    """
    difference = set(before.workers) ^ set(after.workers)
    if len(difference) != 1 or not before.workers or not after.workers:
        raise InputError(f"workers differ by {sorted(difference)}: expected exactly one that left or joined")
    names = sorted({*before.workers, *after.workers}, key=str.encode)
    index = {name: position for position, name in enumerate(names)}
    old_index = np.array([index[name] for name in before.workers], dtype=np.int64)
    new_index = np.array([index[name] for name in after.workers], dtype=np.int64)
    old_home = old_index[before.home]
    new_home = new_index[after.home]
    old_preferred, new_preferred = before.preferred(), after.preferred()
    old_tasks = np.where(old_preferred >= 0, old_index[old_preferred], -1)
    new_tasks = np.where(new_preferred >= 0, new_index[new_preferred], -1)
    largest = np.zeros(len(hints.keys), dtype=np.uint64)
    np.maximum.at(largest, hints.entries, hints.weights)
    moved = old_home != new_home
    return MembershipChange(
        worker=difference.pop(),
        moved_keys=int(moved.sum()),
        moved_bytes=sum(largest[moved].tolist()),
        moved_tasks=int((old_tasks != new_tasks).sum()),
        share=_share_at(hints, new_home, new_tasks),
        at_old_home=_share_at(hints, old_home, new_tasks),
    )


def _share_at(hints: TaskHints, home: npt.NDArray[np.int64], preferred: npt.NDArray[np.int64]) -> HomeShare:
    task_of_entry = np.repeat(np.arange(len(hints)), np.diff(hints.offsets))
    at_home = (home[hints.entries] == preferred[task_of_entry]) & (home[hints.entries] >= 0)
    return HomeShare(sum(hints.weights[at_home].tolist()), sum(hints.weights.tolist()))


def _distinct_weights(hints: Iterable[Hint]) -> Mapping[str, int]:
    weights: dict[str, int] = {}
    for key, weight in hints:
        if not 0 <= weight <= MAX_U64:
            raise InputError(f"weight {weight} of {key!r}: expected an integer of 0 … {MAX_U64}")
        if weight and weight > weights.get(key, 0):
            weights[key] = weight
    return weights


def _scores(hints: TaskHints, home: npt.NDArray[np.int64], workers: int) -> tuple[U64Array, U64Array]:
    """Weight per task and worker, exact beyond 64 bits: sums of 32-bit halves, carried at the end."""
    cells = np.repeat(np.arange(len(hints)), np.diff(hints.offsets)) * workers + home[hints.entries]
    high = np.zeros(len(hints) * workers, dtype=np.uint64)
    low = np.zeros_like(high)
    np.add.at(high, cells, hints.weights >> np.uint64(32))
    np.add.at(low, cells, hints.weights & _LOW)
    high += low >> np.uint64(32)
    return high.reshape(-1, workers), (low & _LOW).reshape(-1, workers)


def _key_set_stream(hints: TaskHints, task: int) -> bytes:
    entries = hints.entries[hints.offsets[task] : hints.offsets[task + 1]].tolist()
    return b"".join([string_bytes(hints.keys[entry]) for entry in entries])


def _has_equal_scores(high: U64Array, low: U64Array, order: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
    """Which tasks need their tie hashes: hashing all files of a task is the slow part for tasks of many files."""
    high, low = np.take_along_axis(high, order, axis=1), np.take_along_axis(low, order, axis=1)
    equal = (high[:, 1:] == high[:, :-1]) & (low[:, 1:] == low[:, :-1])
    result: npt.NDArray[np.bool_] = equal.any(axis=1)
    return result


def _tie_hashes(hints: TaskHints, tasks: npt.NDArray[np.int64], urls: Sequence[str]) -> U64Array:
    prefix = string_bytes(_TIE)
    key_sets = siphash13([_key_set_stream(hints, task) for task in tasks.tolist()])
    starts = [prefix + integer_bytes(key_set) for key_set in key_sets.tolist()]
    return pair_hashes(starts, [string_bytes(url) for url in urls])
