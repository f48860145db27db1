"""The plan-ids of this process: which scan each stands for, for as long as somebody may ask."""

from __future__ import annotations

import uuid
from collections import Counter, OrderedDict
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, replace
from threading import Lock
from typing import Any, Final

MAX_PLAN_IDS: Final = 10_000
"""Beyond this many, the plan-id that was used longest ago is forgotten; its tokens stay valid."""


@dataclass(frozen=True)
class PlannedScan:
    """What a plan-id stands for.

    Attributes:
        table: the table's identity.
        key: the plan's key in the cache.
        scan: the pinned scan.
        used_at: seconds of the clock.
    """

    table: str
    key: Hashable
    scan: Mapping[str, Any]
    used_at: float


class PlanIds:
    """Plan-ids by age; nothing here holds a plan.

    Args:
        seconds: how long a plan-id stays after its last use.
        clock: seconds that only grow.
    """

    def __init__(self, seconds: float, clock: Callable[[], float]) -> None:
        self._seconds, self._clock = seconds, clock
        self._lock = Lock()
        self._planned: OrderedDict[str, PlannedScan] = OrderedDict()
        self._users: Counter[Hashable] = Counter()

    def add(self, table: str, key: Hashable, scan: Mapping[str, Any]) -> str:
        """A new plan-id for a scan."""
        plan_id = str(uuid.uuid4())
        with self._lock:
            self._expire()
            self._planned[plan_id] = PlannedScan(table, key, scan, self._clock())
            self._users[key] += 1
            if len(self._planned) > MAX_PLAN_IDS:
                self._drop(next(iter(self._planned)))
        return plan_id

    def get(self, plan_id: str) -> PlannedScan | None:
        """What a plan-id stands for; ``None`` for an unknown one."""
        with self._lock:
            self._expire()
            planned = self._planned.get(plan_id)
            if planned is not None:
                self._planned[plan_id] = replace(planned, used_at=self._clock())
                self._planned.move_to_end(plan_id)
            return planned

    def forget(self, plan_id: str) -> bool:
        """Forgets a plan-id; returns whether no other one stands for the same plan."""
        with self._lock:
            return self._drop(plan_id)

    def _drop(self, plan_id: str) -> bool:
        planned = self._planned.pop(plan_id, None)
        if planned is None:
            return False
        self._users[planned.key] -= 1
        if self._users[planned.key]:
            return False
        del self._users[planned.key]
        return True

    def _expire(self) -> None:
        oldest = self._clock() - self._seconds
        while self._planned:
            plan_id, planned = next(iter(self._planned.items()))
            if planned.used_at > oldest:
                return
            self._drop(plan_id)
