"""Four ways to hand out one plan, side by side: requests, planning work, response size and server memory.

Source of the designs: the server-side scan planning design of Apache Gravitino.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from planning_health.plan_tasks.batching import batch
from planning_health.plan_tasks.cache_model import BYTES_PER_TASK, plan_bytes, plans_computed
from planning_health.plan_tasks.entry_ranges import RangePlan, entry_ranges
from planning_health.plan_tasks.token import EntryRange, OffsetToken, RangeToken, encode

INLINE = "everything inline"
OFFSET = "offset tokens, no cache"
CACHED = "offset tokens, plan cache"
RANGES = "entry ranges"

DELETES_FALL_BACK = (
    "The snapshot has delete manifests: entry ranges fall back to offset tokens with a plan cache, so that every task "
    "gets its deletes."
)
NO_SEEK = (
    "Avro cannot seek to a row: each opened manifest is decoded from its beginning to the end of the range, so that "
    "more entries are decoded than a batch wants."
)


@dataclass(frozen=True)
class PlanShape:
    """What planning one scan reads and returns.

    Attributes:
        table: the table's identity in tokens.
        snapshot_id: the pinned snapshot.
        scan: the request with its snapshot pinned, as tokens carry it.
        tasks: file scan tasks of the plan.
        manifests: paths of the data manifests that survive manifest pruning, in order.
        entries: their physical entries, deleted ones included.
        delete_manifests: delete manifests that every full plan reads.
        delete_entries: their entries.
        bytes_per_task: bytes of one task in a response and in a cache.
    """

    table: str
    snapshot_id: int
    scan: Mapping[str, Any]
    tasks: int
    manifests: Sequence[str]
    entries: Sequence[int]
    delete_manifests: int = 0
    delete_entries: int = 0
    bytes_per_task: int = BYTES_PER_TASK


@dataclass(frozen=True)
class DesignCost:
    """What one design costs for one scan.

    Attributes:
        design: its name.
        requests: requests of the client.
        plans_computed: full plans computed by the server; entry ranges prune manifests once and never plan again.
        manifests_opened: manifest files opened in all.
        entries_decoded: manifest entries decoded in all.
        peak_response_bytes: the largest response, tokens included.
        server_bytes_held: bytes that the replicas together keep between requests.
        note: what a reader must know beside the numbers.
    """

    design: str
    requests: int
    plans_computed: float
    manifests_opened: float
    entries_decoded: float
    peak_response_bytes: int
    server_bytes_held: float
    note: str | None = None


def compare_designs(
    shape: PlanShape, batch_size: int, replicas: int, *, cache_bytes: int | None = None
) -> list[DesignCost]:
    """The four designs for one scan.

    Args:
        shape: what the plan reads and returns.
        batch_size: tasks, or entries, of one response.
        replicas: server processes, reached uniformly, each with its own cache, concurrent misses coalesced.
        cache_bytes: limit of one replica's cache; a plan that exceeds it is planned again for every request.

    Raises:
        InputError: a negative batch size or no replica.
    """
    batching = batch(shape.tasks, batch_size)
    whole = plan_bytes(shape.tasks, shape.bytes_per_task)
    first = batching.inline * shape.bytes_per_task + batching.tokens * _offset_token_bytes(shape, batch_size)
    fits = cache_bytes is None or whole <= cache_bytes
    plans = plans_computed(batching.requests, replicas)
    cached = plans.local_cache_expected if fits else float(plans.no_cache)
    too_large = None if fits else f"A plan of {whole} bytes exceeds the cache's {cache_bytes} bytes: it is not kept."
    return [
        _offset_design(INLINE, shape, 1, 1, whole, 0),
        _offset_design(OFFSET, shape, batching.requests, plans.no_cache, first, 0),
        _offset_design(CACHED, shape, batching.requests, cached, first, cached * whole if fits else 0, too_large),
        _offset_design(
            RANGES, shape, batching.requests, cached, first, cached * whole if fits else 0, DELETES_FALL_BACK
        )
        if shape.delete_manifests
        else _range_design(shape, batch_size),
    ]


def _offset_design(
    design: str, shape: PlanShape, requests: int, plans: float, peak: int, held: float, note: str | None = None
) -> DesignCost:
    return DesignCost(
        design=design,
        requests=requests,
        plans_computed=plans,
        manifests_opened=plans * (len(shape.manifests) + shape.delete_manifests),
        entries_decoded=plans * (sum(shape.entries) + shape.delete_entries),
        peak_response_bytes=peak,
        server_bytes_held=held,
        note=note,
    )


def _range_design(shape: PlanShape, batch_size: int) -> DesignCost:
    ranges = entry_ranges(shape.entries, batch_size)
    batches = [min(shape.tasks, sum(part.end - part.start for part in batch)) for batch in ranges.batches]
    first = batches[0] * shape.bytes_per_task + _range_tokens_bytes(shape, ranges) if batches else 0
    later = max((size * shape.bytes_per_task for size in batches[1:]), default=0)
    return DesignCost(
        design=RANGES,
        requests=max(1, len(batches)),
        plans_computed=1.0,
        manifests_opened=ranges.opens,
        entries_decoded=ranges.decoded_to_range_end,
        peak_response_bytes=max(first, later),
        server_bytes_held=0.0,
        note=NO_SEEK,
    )


def _offset_token_bytes(shape: PlanShape, batch_size: int) -> int:
    """The length of the longest offset token of the plan."""
    last = max(0, shape.tasks - 1)
    return len(encode(OffsetToken(shape.table, last, max(1, batch_size), shape.scan)))


def _range_tokens_bytes(shape: PlanShape, ranges: RangePlan) -> int:
    return sum(
        len(
            encode(
                RangeToken(
                    shape.table,
                    shape.snapshot_id,
                    shape.scan,
                    tuple(EntryRange(shape.manifests[part.manifest], part.start, part.end) for part in batch),
                )
            )
        )
        for batch in ranges.batches[1:]
    )
