"""Tokens that name manifest entries: bounded work per token, without a cache and without planning again.

Source of the idea: the manifest entry-range follow-up in the server-side scan planning design of Apache Gravitino.
Positions are physical: deleted entries count, live counts of a manifest list leave them out. Avro cannot seek to a
row, so the cost of a batch is what lies before its end in each manifest, and not the batch's own size.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from planning_health.errors import InputError

MAX_MANIFESTS_PER_TOKEN = 100
"""A token names about a hundred bytes per manifest; this bounds it at the price of uneven batches."""

MAX_RANGES = 1_000_000
"""Most ranges of one plan: more would fill the memory of whoever cuts them, and no client redeems as many."""


@dataclass(frozen=True, slots=True)
class Range:
    """Entries [start, end) of the manifest with this index."""

    manifest: int
    start: int
    end: int


@dataclass(frozen=True)
class RangePlan:
    """Batches of entry ranges; the first is delivered inline, each other one is a token.

    Attributes:
        entries: physical entries per manifest.
        batches: what each response covers.
    """

    entries: tuple[int, ...]
    batches: tuple[tuple[Range, ...], ...]

    @property
    def opens(self) -> int:
        """Manifests opened in all; at most manifests + batches - 1 unless a cap cuts batches short."""
        return sum(len(batch) for batch in self.batches)

    @property
    def decoded_to_range_end(self) -> int:
        """Entries decoded when reading starts at a manifest's beginning and stops at the range's end."""
        return sum(part.end for batch in self.batches for part in batch)

    @property
    def decoded_whole(self) -> int:
        """Entries decoded when every opened manifest is read whole."""
        return sum(self.entries[part.manifest] for batch in self.batches for part in batch)


def entry_ranges(
    entries: Sequence[int | None], batch_size: int, max_manifests: int = MAX_MANIFESTS_PER_TOKEN
) -> RangePlan:
    """Cuts the entries of the surviving manifests, in their order, into batches.

    Args:
        entries: physical entries per manifest, deleted ones included.
        batch_size: entries of one batch; 0 puts all into the first and ignores the cap.
        max_manifests: most manifests of one batch.

    Raises:
        InputError: a count is not known (then the manifest must be read to count) or negative, the batch size or the
            cap is out of its range, or there would be more than ``MAX_RANGES`` ranges.
    """
    counts = [_known(count, manifest) for manifest, count in enumerate(entries)]
    if batch_size < 0:
        raise InputError(f"batch_size {batch_size}: expected at least 0")
    if max_manifests < 1:
        raise InputError(f"max_manifests {max_manifests}: expected at least 1")
    most = len(counts) + (sum(counts) // batch_size if batch_size else 0)
    if most > MAX_RANGES:
        raise InputError(
            f"batch_size {batch_size}: cuts {sum(counts):,} manifest entries into {most:,} ranges, expected "
            f"{MAX_RANGES:,} at most: take a larger batch size, or a filter that leaves fewer manifests"
        )
    if batch_size == 0:
        everything = tuple(Range(manifest, 0, count) for manifest, count in enumerate(counts) if count)
        return RangePlan(tuple(counts), (everything,) if everything else ())
    return RangePlan(tuple(counts), tuple(_cut(counts, batch_size, max_manifests)))


def _cut(counts: Sequence[int], batch_size: int, max_manifests: int) -> list[tuple[Range, ...]]:
    batches: list[tuple[Range, ...]] = []
    current: list[Range] = []
    room = batch_size
    for manifest, count in enumerate(counts):
        at = 0
        while at < count:
            if not room or len(current) == max_manifests:
                batches.append(tuple(current))
                current, room = [], batch_size
            taken = min(room, count - at)
            current.append(Range(manifest, at, at + taken))
            at += taken
            room -= taken
    if current:
        batches.append(tuple(current))
    return batches


def _known(count: int | None, manifest: int) -> int:
    if count is None:
        raise InputError(f"entries of manifest {manifest} not recorded: expected a count, read the manifest for it")
    if count < 0:
        raise InputError(f"entries {count} of manifest {manifest}: expected at least 0")
    return count
