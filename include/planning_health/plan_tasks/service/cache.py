"""A cache of values that are expensive to compute: bounded by bytes and entries, and computed once at a time."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from concurrent.futures import Future
from dataclasses import dataclass
from enum import StrEnum
from threading import Lock
from typing import Generic, Protocol, TypeVar


class Sized(Protocol):
    """A value that knows what it holds."""

    @property
    def held_bytes(self) -> int:
        """Bytes in memory."""


Value = TypeVar("Value", bound=Sized)


class Found(StrEnum):
    """How a value was come by."""

    COMPUTED = "computed"
    HIT = "hit"
    COALESCED = "coalesced"  # another request was already computing it


@dataclass
class _Entry(Generic[Value]):
    value: Value
    used_at: float


class PlanCache(Generic[Value]):
    """Values by key. What was used longest ago goes first; what exceeds the limit alone is not kept.

    Requests for a key that is being computed wait for that computation, and share its failure as well.

    Args:
        max_bytes: most bytes of all values together; 0 keeps nothing.
        max_entries: most values.
        seconds: how long a value stays after its last use.
        clock: seconds that only grow.
    """

    def __init__(
        self, max_bytes: int, max_entries: int, seconds: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._max_bytes, self._max_entries, self._seconds, self._clock = max_bytes, max_entries, seconds, clock
        self._lock = Lock()
        self._entries: OrderedDict[Hashable, _Entry[Value]] = OrderedDict()
        self._computing: dict[Hashable, Future[Value]] = {}
        self._held = 0
        self.evictions = 0

    @property
    def held_bytes(self) -> int:
        """Bytes of all values that are kept."""
        with self._lock:
            self._expire()
            return self._held

    def __len__(self) -> int:
        """Number of values that are kept."""
        with self._lock:
            self._expire()
            return len(self._entries)

    def get(self, key: Hashable, compute: Callable[[], Value]) -> tuple[Value, Found]:
        """The value of a key, computed unless it is there or under way. What ``compute`` raises is raised here."""
        with self._lock:
            self._expire()
            entry = self._entries.get(key)
            if entry is not None:
                entry.used_at = self._clock()
                self._entries.move_to_end(key)
                return entry.value, Found.HIT
            other = self._computing.get(key)
            if other is None:
                future: Future[Value] = Future()
                self._computing[key] = future
        if other is not None:
            return other.result(), Found.COALESCED
        return self._compute(key, future, compute), Found.COMPUTED

    def _compute(self, key: Hashable, future: Future[Value], compute: Callable[[], Value]) -> Value:
        try:
            value = compute()
        except BaseException as error:
            with self._lock:
                del self._computing[key]
            future.set_exception(error)
            raise
        with self._lock:
            del self._computing[key]
            self._keep(key, value)
        future.set_result(value)
        return value

    def release(self, key: Hashable) -> None:
        """Forgets a key's value, if it is kept."""
        with self._lock:
            self._drop(key)

    def _keep(self, key: Hashable, value: Value) -> None:
        size = value.held_bytes
        if size > self._max_bytes or not self._max_entries:
            return
        while self._entries and (self._held + size > self._max_bytes or len(self._entries) >= self._max_entries):
            self._drop(next(iter(self._entries)))
            self.evictions += 1
        self._entries[key] = _Entry(value, self._clock())
        self._held += size

    def _drop(self, key: Hashable) -> None:
        entry = self._entries.pop(key, None)
        if entry is not None:
            self._held -= entry.value.held_bytes

    def _expire(self) -> None:
        oldest = self._clock() - self._seconds
        while self._entries:
            key, entry = next(iter(self._entries.items()))
            if entry.used_at > oldest:
                return
            self._drop(key)
