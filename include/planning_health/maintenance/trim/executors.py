"""What a trim does on executors: encodes entries for their new manifests, and writes these."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from planning_health.errors import WorkFailedError
from planning_health.maintenance.trim.manifest_file import EmptyManifest
from planning_health.maintenance.trim.rule import TrimRule
from planning_health.maintenance.trim.transcode import transcode
from planning_health.metadata.avro_reader import read_avro
from planning_health.metadata.manifest_list import ManifestFile
from planning_health.metadata.storage_options import filesystem_of

Ints = npt.NDArray[np.int32]
Chunk = tuple[int, tuple[bytes, bytes, bytes]]
"""New manifest → its entries from one old one: ranks, lengths (int32) and the encoded entries themselves."""


@dataclass(frozen=True)
class Task:
    """What executors need to know; they read no settings."""

    rule: TrimRule
    empty: EmptyManifest
    prefix: str
    io_properties: dict[str, str]
    compiled: bool

    def path(self, number: int) -> str:
        """Where a new manifest goes. A task that runs twice writes the same bytes to the same place."""
        return f"{self.prefix}-m{number}.avro"


@dataclass(frozen=True)
class Places:
    """Where the live entries of one old manifest go.

    Attributes:
        positions: of the entries, in the old manifest.
        groups: the new manifest of each.
        ranks: its place there.
    """

    positions: Ints
    groups: Ints
    ranks: Ints


def encoder(task: Task) -> Callable[[tuple[ManifestFile, Places]], Iterator[Chunk]]:
    """The first stage: one old manifest → its entries, by new manifest."""

    def encode(work: tuple[ManifestFile, Places]) -> Iterator[Chunk]:
        manifest, places = work
        filesystem, path = filesystem_of(manifest.path, task.io_properties)
        source = read_avro(manifest.path, filesystem.cat_file(path))
        new = transcode(manifest, source, task.empty.avro.schema, task.rule, compiled=task.compiled)
        starts, ends = new.offsets[places.positions], new.offsets[places.positions + 1]
        if not np.count_nonzero(new.offsets[1:] > new.offsets[:-1]) == np.count_nonzero(ends > starts) == len(starts):
            raise WorkFailedError(f"{manifest.path} holds other live entries than were measured")
        bounds = np.flatnonzero(np.diff(places.groups, prepend=-1, append=-1))
        for first, last in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True):
            spans = zip(starts[first:last].tolist(), ends[first:last].tolist(), strict=True)
            content = b"".join([new.content[start:end] for start, end in spans])
            lengths = (ends - starts)[first:last].astype(np.int32)
            yield int(places.groups[first]), (places.ranks[first:last].tobytes(), lengths.tobytes(), content)

    return encode


def writer(task: Task) -> Callable[[Iterator[Chunk]], Iterator[tuple[int, int]]]:
    """The second stage: all chunks of a new manifest → its file; gives its number and size."""

    def write(chunks: Iterator[Chunk]) -> Iterator[tuple[int, int]]:
        by_group: dict[int, list[tuple[bytes, bytes, bytes]]] = defaultdict(list)
        for group, chunk in chunks:
            by_group[group].append(chunk)
        for group, parts in by_group.items():
            content = task.empty.filled(_in_order(parts))
            filesystem, path = filesystem_of(task.path(group), task.io_properties)
            filesystem.pipe_file(path, content)
            yield group, len(content)

    return write


def _in_order(parts: list[tuple[bytes, bytes, bytes]]) -> Iterator[memoryview]:
    ranks = np.concatenate([np.frombuffer(ranks, dtype=np.int32) for ranks, _, _ in parts])
    lengths = np.concatenate([np.frombuffer(lengths, dtype=np.int32) for _, lengths, _ in parts]).astype(np.int64)
    content = memoryview(b"".join([content for _, _, content in parts]))
    ends = np.cumsum(lengths)
    for place in np.argsort(ranks).tolist():
        yield content[ends[place] - lengths[place] : ends[place]]
