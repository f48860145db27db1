"""Which manifest size and sort order plan the observed queries fastest, by the prediction of each candidate.

A rewrite of the manifests is predicted for every candidate, each query is planned on the predicted snapshot, and what
it opens is priced: so much for each manifest in the list, for each that is opened, and for each byte that is decoded.
Small aligned manifests spare a selective query the entries that it does not need; a query that reads everything pays
for opening each of them. Neither is always better, and where planning takes milliseconds neither is noticed: what
nobody notices is not advised.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import permutations
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow.compute as pc

from planning_health.advice.observed import ObservedFilter
from planning_health.health.properties import MERGE_ENABLED
from planning_health.maintenance import commands
from planning_health.maintenance.guards import spec_refusal
from planning_health.maintenance.next_append import predict_next_append
from planning_health.maintenance.prediction import (
    DEFAULT_TARGET_SIZE,
    TARGET_SIZE_PROPERTY,
    predict_rewrite_manifests,
    target_size,
)
from planning_health.maintenance.proposals import WORTHWHILE, used_specs
from planning_health.metadata.manifest_encoding import EntrySamples
from planning_health.metadata.model import DATA, DELETES, PlanningMetadata
from planning_health.planning.scan import ScanPlanner
from planning_health.wording import counted

OPEN_MS: Final = 0.3
DECODE_MS_PER_MB: Final = 7.7
LIST_MS: Final = 0.02
"""What Iceberg Java 1.12 takes on local files, warm: to open a manifest, to decode a megabyte of its entries (before
compression), as ``benchmarks/layout.py`` measures it, and for each manifest of the list, at most."""

SMALLEST_TARGET: Final = 64 * 1024
LARGEST_TARGET: Final = 32 * 1024 * 1024
MOST_MANIFESTS: Final = 2_000
"""No candidate makes more of them: every reader of every snapshot reads the whole list."""
MOST_FILTERS: Final = 200
"""Distinct filters that are planned for each candidate, the most frequent ones."""
NOTABLE_MS: Final = 10.0
"""Milliseconds of a scan's planning that are noticed: Iceberg's parallel planning waits in such steps."""
_MOST_FIELDS_PERMUTED: Final = 3
_SAME: Final = 0.02
"""Candidates this close plan alike: the one with the larger target makes fewer manifests."""


@dataclass(frozen=True)
class PlanningPrice:
    """What planning takes, in milliseconds.

    Attributes:
        open_ms: opening one manifest.
        decode_ms_per_mb: decoding a megabyte of entries, before compression.
        list_ms: for each manifest of the snapshot, opened or not.
        threads: manifests that are read at the same time; Iceberg's worker pool has one a core, and at least two.
    """

    open_ms: float = OPEN_MS
    decode_ms_per_mb: float = DECODE_MS_PER_MB
    list_ms: float = LIST_MS
    threads: int = 1

    @classmethod
    def of(cls, metadata: PlanningMetadata, threads: int | None = None) -> PlanningPrice:
        """The price where the table lies: the quickest fetch of a manifest that was measured comes on top."""
        fetch = pc.min(metadata.manifests["read_ms"]).as_py() or 0.0
        return cls(open_ms=OPEN_MS + fetch, threads=threads or max(2, os.cpu_count() or 1))

    def planning_ms(self, metadata: PlanningMetadata, opened: npt.NDArray[np.int64]) -> float:
        """What planning takes that opens these manifests: the delete manifests first, then those of data files."""
        manifests = metadata.manifests
        content = manifests["content"].to_numpy()[opened]
        megabytes = manifests["uncompressed_bytes"].fill_null(0).to_numpy()[opened] / 1e6
        times = self.open_ms + self.decode_ms_per_mb * megabytes
        return self.list_ms * len(manifests) + sum(self._together(times[content == kind]) for kind in (DELETES, DATA))

    def _together(self, times: npt.NDArray[np.float64]) -> float:
        return float(max(times.max(), times.sum() / self.threads)) if len(times) else 0.0


def notably_dearer(planning_ms: float, than_ms: float) -> bool:
    """Whether planning takes longer by a time and by a share that are worth a change."""
    return planning_ms - than_ms >= max(NOTABLE_MS, WORTHWHILE * planning_ms)


@dataclass(frozen=True)
class Layout:
    """One way to lay the manifests out, and what the workload costs then.

    Attributes:
        target_bytes: the size that manifests aim at; ``sort_by`` the partition fields that they are clustered by, none
            for all fields in their order.
        manifests: how many there will be; ``metadata_bytes`` about their sizes, summed.
        planning_ms: predicted planning time of an observed scan, on average; ``opened`` the manifests that it opens.
        next_append_ms: the same after the next append, which may merge manifests.
    """

    target_bytes: int
    sort_by: tuple[str, ...]
    manifests: int
    metadata_bytes: int
    planning_ms: float
    opened: float
    next_append_ms: float

    @property
    def keeps(self) -> bool:
        """The next append takes nothing notable of the gain away."""
        return not notably_dearer(self.next_append_ms, self.planning_ms)


@dataclass(frozen=True)
class LayoutAdvice:
    """The layouts that were compared, and the one that is advised.

    Attributes:
        now: today's layout as it is.
        candidates: the layouts after a rewrite, the quickest to plan first.
        advised: the one to choose; ``None`` where no rewrite is worth it.
        why: in a sentence.
        properties: the table properties that make and keep it.
        price: what planning was priced with.
    """

    now: Layout
    candidates: tuple[Layout, ...]
    advised: Layout | None
    why: str
    properties: dict[str, str]
    price: PlanningPrice

    def as_json(self) -> dict[str, Any]:
        """The advice as a result file holds it."""
        return asdict(self)

    def commands(self, metadata: PlanningMetadata) -> list[str]:
        """The statements that make the advised layout."""
        if self.advised is None:
            return []
        rewrites = [
            commands.rewrite_manifests(metadata.info.name, spec_id, _sorted_by(metadata, spec_id, self.advised.sort_by))
            for spec_id in _rewritable(metadata)
        ]
        return [*commands.property_changes(metadata.info.name, self.properties), *rewrites]


def advise_layout(
    metadata: PlanningMetadata,
    filters: Sequence[ObservedFilter],
    *,
    price: PlanningPrice | None = None,
    targets: Sequence[int] | None = None,
) -> LayoutAdvice | None:
    """The manifest size and order that plan the filters fastest; ``None`` without filters or manifests to rewrite.

    Args:
        metadata: the recorded snapshot.
        filters: the workload; each counts by its weight.
        price: what planning takes; by default what was measured on the table, with the worker pool of this machine.
        targets: the target sizes to compare; by default powers of two, the table's own and Iceberg's default.
    """
    if not filters or not _rewritable(metadata):
        return None
    metadata = replace(metadata, samples=EntrySamples())  # sizes by proportion: the price needs no real compression
    pricing = _Pricing(metadata, filters[:MOST_FILTERS], price or PlanningPrice.of(metadata))
    own = target_size(metadata.info.properties)
    now = pricing.layout(metadata, own, ())
    found = [
        pricing.layout(rewritten(metadata, target, order), target, order)
        for target in targets or _targets(metadata, own)
        for order in _orders(metadata)
    ]
    candidates = tuple(sorted(found, key=lambda item: (item.planning_ms, -item.target_bytes, item.sort_by)))
    best = _best(candidates, own)
    if not notably_dearer(now.planning_ms, best.planning_ms):
        return LayoutAdvice(now, candidates, None, _good_enough(now, candidates[0]), {}, pricing.price)
    return LayoutAdvice(now, candidates, best, _why(now, best, candidates), _properties(metadata, best), pricing.price)


def _best(candidates: Sequence[Layout], own: int) -> Layout:
    """The quickest candidate, unless one that needs no property, or Iceberg's default, is not notably dearer."""
    quickest = candidates[0]
    undemanding = [
        item
        for item in candidates
        if item.target_bytes in (own, DEFAULT_TARGET_SIZE)
        and not item.sort_by
        and not notably_dearer(item.planning_ms, quickest.planning_ms)
    ]
    if undemanding:
        return max(undemanding, key=lambda item: item.target_bytes == own)
    alike = [item for item in candidates if item.planning_ms <= quickest.planning_ms * (1 + _SAME)]
    return max(alike, key=lambda item: (not item.sort_by, item.target_bytes))


class _Pricing:
    def __init__(self, metadata: PlanningMetadata, filters: Sequence[ObservedFilter], price: PlanningPrice) -> None:
        self.metadata, self.filters, self.price = metadata, filters, price
        self._weight = sum(item.weight for item in filters)

    def layout(self, state: PlanningMetadata, target: int, order: tuple[str, ...]) -> Layout:
        planning_ms, opened = self._mean(state)
        later = predict_next_append(state, target)
        return Layout(
            target_bytes=target,
            sort_by=order,
            manifests=len(state.manifests),
            metadata_bytes=state.metadata_bytes,
            planning_ms=planning_ms,
            opened=opened,
            next_append_ms=planning_ms if later is state else self._mean(later)[0],
        )

    def _mean(self, state: PlanningMetadata) -> tuple[float, float]:
        """Planning time and opened manifests of a scan, by the filters' weights."""
        planner = ScanPlanner(state)
        times = opened = 0.0
        for item in self.filters:
            ordinals = planner.plan(item.expression).scanned_manifests
            times += item.weight * self.price.planning_ms(state, ordinals)
            opened += item.weight * len(ordinals)
        return times / self._weight, opened / self._weight


def _rewritable(metadata: PlanningMetadata) -> list[int]:
    return [spec_id for spec_id in used_specs(metadata) if spec_refusal(metadata, spec_id) is None]


def rewritten(metadata: PlanningMetadata, target: int, order: tuple[str, ...]) -> PlanningMetadata:
    """The predicted snapshot after a rewrite of all its manifests to a target size, clustered by partition fields."""
    state = metadata
    for spec_id in _rewritable(metadata):
        state = predict_rewrite_manifests(state, spec_id, target, _sorted_by(metadata, spec_id, order)).metadata
    return state


def _sorted_by(metadata: PlanningMetadata, spec_id: int, order: tuple[str, ...]) -> tuple[str, ...]:
    """The order, in a spec that has all of its fields."""
    fields = {field.name for field in metadata.info.specs[spec_id].fields}
    return order if fields.issuperset(order) else ()


def _targets(metadata: PlanningMetadata, own: int) -> list[int]:
    total = metadata.metadata_bytes
    sizes, size = {own, DEFAULT_TARGET_SIZE}, SMALLEST_TARGET
    while size <= LARGEST_TARGET:
        sizes.add(size)
        if size >= total:  # larger ones make one manifest, too
            break
        size *= 2
    return sorted(size for size in sizes if total / size <= MOST_MANIFESTS or size in (own, DEFAULT_TARGET_SIZE))


def _orders(metadata: PlanningMetadata) -> Iterator[tuple[str, ...]]:
    """The spec's own order, which no fields stand for, and others: of many fields, each one first."""
    spec = metadata.info.specs[metadata.info.default_spec_id]
    names = [field.name for field in sorted(spec.fields, key=lambda field: field.field_id)]
    yield ()
    usable = [name for name in names if "." not in name and "`" not in name]
    if len(names) <= _MOST_FIELDS_PERMUTED and usable == names:
        yield from list(permutations(names))[1:]
    else:
        yield from ((name, *(other for other in usable if other != name)) for name in usable if name != names[0])


def _properties(metadata: PlanningMetadata, layout: Layout) -> dict[str, str]:
    properties = metadata.info.properties
    wanted: dict[str, str] = {}
    if layout.target_bytes != target_size(properties):
        wanted[TARGET_SIZE_PROPERTY] = str(layout.target_bytes)
    if not layout.keeps and properties.get(MERGE_ENABLED) != "false":
        wanted[MERGE_ENABLED] = "false"
    return wanted


def _described(layout: Layout) -> str:
    order = f", clustered by {', '.join(layout.sort_by)}" if layout.sort_by else ""
    return f"{counted(layout.manifests, 'manifest')} of up to {layout.target_bytes:,} bytes{order}"


def _good_enough(now: Layout, quickest: Layout) -> str:
    layout = (
        "Iceberg's default manifest size"
        if now.target_bytes == DEFAULT_TARGET_SIZE
        else f"the table's manifest size of {now.target_bytes:,} bytes"
    )
    compared = (
        f"the quickest layout would save {now.planning_ms - quickest.planning_ms:,.1f} ms ({_described(quickest)})"
        if quickest.planning_ms < now.planning_ms
        else "no layout is quicker"
    )
    return (
        f"{layout} is good enough: an observed scan plans in {now.planning_ms:,.1f} ms with today's "
        f"{counted(now.manifests, 'manifest')}, and {compared}; another size or order is advised from "
        f"{NOTABLE_MS:g} ms and {WORTHWHILE:.0%} of a scan on (whether a rewrite in this one pays: planning-health "
        "maintain)"
    )


def _why(now: Layout, best: Layout, candidates: Sequence[Layout]) -> str:
    default = next((item for item in candidates if item.target_bytes == DEFAULT_TARGET_SIZE and not item.sort_by), None)
    compared = (
        f" (Iceberg's default of {DEFAULT_TARGET_SIZE:,} bytes: {default.planning_ms:,.1f} ms)"
        if default is not None and default is not best
        else ""
    )
    lasts = (
        ""
        if best.keeps
        else f"; appends would merge these manifests again ({best.next_append_ms:,.1f} ms), so manifests are no longer "
        "merged by them"
    )
    more = best.planning_ms - candidates[0].planning_ms
    enough = (
        f"; that is good enough: the quickest layout ({_described(candidates[0])}) would save only {more:,.1f} ms more"
        if more > 0
        else ""
    )
    return (
        f"an observed scan plans in {best.planning_ms:,.1f} ms with {_described(best)}, and in {now.planning_ms:,.1f} "
        f"ms with today's {now.manifests:,}{compared}; it opens {best.opened:,.1f} of them instead of "
        f"{now.opened:,.1f}{lasts}{enough}"
    )
