"""How often replicas compute one plan: the closed form.

Source: redeeming a token needs the whole ordered plan of its snapshot, and a plan cache is local to its replica, as
the server-side scan planning design of Apache Gravitino describes. The expectation is the number of distinct
replicas that M requests reach when each picks one of R evenly.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from planning_health.errors import InputError

BYTES_PER_TASK = 3000
"""About what one file scan task holds in memory or in a response, with the statistics of a few columns."""

CACHE_ENTRIES = 200
"""Plans that a replica's cache keeps, unless their bytes reach its limit before."""

CACHE_EXPIRY_SECONDS = 3600
"""How long a plan stays in the cache after its last use."""


@dataclass(frozen=True)
class PlansComputed:
    """Plans computed for one scan of M requests on R replicas.

    Attributes:
        no_cache: every request plans again; also the limit for concurrent misses that are not coalesced, and for a
            cache too small for the plan.
        affinity_cache: one, when all requests of the scan reach one replica or all replicas share the cache.
        local_cache_expected: the mean when each request reaches any replica and they come one after another.
        bound: what that mean, and coalesced requests, never exceed.
    """

    no_cache: int
    affinity_cache: int
    local_cache_expected: float
    bound: int


def plans_computed(requests: int, replicas: int) -> PlansComputed:
    """Plans computed for one scan under each policy.

    Raises:
        InputError: fewer than one request or replica.
    """
    for name, value in (("requests", requests), ("replicas", replicas)):
        if value < 1:
            raise InputError(f"{name} {value}: expected at least 1")
    return PlansComputed(
        no_cache=requests,
        affinity_cache=1,
        local_cache_expected=distinct_replicas(requests, replicas),
        bound=min(replicas, requests),
    )


def distinct_replicas(requests: int, replicas: int) -> float:
    """Expected number of replicas that at least one of the requests reaches: ``R (1 - (1 - 1/R)^M)``."""
    if replicas == 1 or requests == 1:
        return 1.0
    return -replicas * math.expm1(requests * math.log1p(-1 / replicas))


def plan_bytes(tasks: int, bytes_per_task: int = BYTES_PER_TASK) -> int:
    """Bytes that one cached plan holds; a limit on entries alone would not bound them."""
    return tasks * bytes_per_task
