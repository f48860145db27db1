"""Compares two snapshots of a table over all that was committed between them: nothing may change without a commit.

Files that appendings, deletes, overwrites and compactions added or removed are told with the snapshot that did it. What
stands in both snapshots must be the same, but for statistics that a trim has taken away or shortened in between.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.snapshots import Snapshot

from planning_health.maintenance.java_table import ACTION_PROPERTY, SPEC_ID_PROPERTY, TRIM
from planning_health.maintenance.layout import live_files
from planning_health.maintenance.trim.verification import still_bounds
from planning_health.maintenance.verification import (
    Check,
    VerificationReport,
    column_bytes,
    entry_checks,
    equal,
    manifest_checks,
    none,
    ordered,
    recorded_statistics,
    report_of,
    statistics_bytes,
)
from planning_health.metadata.manifest_reader import worth_compiling
from planning_health.metadata.model import DATA, DELETED, DELETES, PlanningMetadata
from planning_health.metadata.record import ReadBytes, manifests_of, read_and_decode
from planning_health.wording import counted

FileKey = tuple[str, int, int | None]
"""Path, content and offset in the file, which tell deletion vectors of one file apart."""

_COUNTS: Final = ("value_count", "null_value_count", "nan_value_count")
_BOUNDS: Final = ("lower_bound", "upper_bound")
_NOTHING: Final = "no file added or removed"
_ALLOWED: Final = {"append": "data files added only", "delete": "no data file added"}


@dataclass(frozen=True)
class Commit:
    """One commit between two snapshots.

    Attributes:
        operation: as its summary has it: ``append``, ``delete``, ``overwrite`` or ``replace``.
        spec_id: the spec whose manifests it rewrote, where it is a rewrite or trim of ours.
        trims: whether it took statistics away.
    """

    snapshot_id: int
    operation: str
    spec_id: int | None = None
    trims: bool = False

    def __str__(self) -> str:
        named = "trim" if self.trims else "rewrite of manifests" if self.spec_id is not None else self.operation
        return f"{named} {self.snapshot_id}"

    def objection(self, content: int, added: int, removed: int) -> str | None:
        """What it should have done instead, where its kind of commit does not do what it did."""
        if self.spec_id is not None:
            return _NOTHING
        wrong = (self.operation == "append" and removed) or (self.operation == "delete" and added)
        return _ALLOWED[self.operation] if wrong and content == DATA else None


def commits_between(metadata: TableMetadata, before: int | None, after: int | None) -> list[Commit] | None:
    """The commits after one snapshot up to another, oldest first.

    Returns:
        ``None`` when the first is no ancestor of the second, as far as the table still knows.
    """
    found: list[Commit] = []
    while after is not None and after != before:
        snapshot = metadata.snapshot_by_id(after)
        if snapshot is None:
            return None
        found.append(_commit(snapshot))
        after = snapshot.parent_snapshot_id
    return found[::-1] if after == before else None


def _commit(snapshot: Snapshot) -> Commit:
    summary = snapshot.summary.additional_properties if snapshot.summary else {}
    operation = snapshot.summary.operation.value if snapshot.summary else "overwrite"  # v1 may have none
    spec_id = summary.get(SPEC_ID_PROPERTY) if operation == "replace" else None
    trims = spec_id is not None and summary.get(ACTION_PROPERTY) == TRIM
    return Commit(snapshot.snapshot_id, operation, int(spec_id) if spec_id is not None else None, trims)


def removed_files(metadata: TableMetadata, snapshot_id: int, read: ReadBytes) -> set[FileKey]:
    """The files that a commit removed: it leaves them as DELETED entries in the manifests that it wrote."""
    manifests = [
        manifest
        for manifest in manifests_of(metadata, snapshot_id, read)[0]
        if manifest.added_snapshot_id == snapshot_id and manifest.counts["deleted_files_count"] != 0
    ]
    removed: set[FileKey] = set()
    for manifest in manifests:
        decoded, _ = read_and_decode(manifest, frozenset(), read, compiled=worth_compiling([manifest]))
        mine = pc.and_(pc.equal(decoded.files["status"], DELETED), pc.equal(decoded.files["snapshot_id"], snapshot_id))
        removed |= {key for key, _ in _keys(decoded.files.filter(mine))}
    return removed


def compare_history(
    before: PlanningMetadata,
    after: PlanningMetadata,
    commits: Sequence[Commit],
    removed_by: Callable[[int], set[FileKey]],
) -> VerificationReport:
    """Compares two recorded snapshots of one history.

    Every file that is in one of them only must have been added, or removed, by one of the commits, and of a kind that
    does so: ours that rewrite manifests do neither. What is in both must be equal in rows, partition, sequence numbers
    and recorded statistics; where a trim of the file's spec lies between, statistics may be missing or shorter, a
    column's counts only together with its bounds. Bytes of all columns' statistics are compared where the files are
    the same. The later snapshot's manifests must be what its manifest list says.

    Args:
        before: the earlier snapshot.
        after: the later one.
        commits: those between, oldest first.
        removed_by: the files that a commit removed, see :func:`removed_files`; asked only where files are missing.
    """
    checks = [equal("the same table", after.info.table_uuid, before.info.table_uuid)]
    for label, content in (("data", DATA), ("delete", DELETES)):
        files = _Files(label, content, before, after)
        checks += files.explained(commits, removed_by)
        checks += files.kept({commit.spec_id for commit in commits if commit.trims and content == DATA})
    return report_of(before, after, [*checks, *manifest_checks(after)])


Key = tuple[FileKey, int]
"""A file and the snapshot that added it: the same path added anew is another one."""


def _keys(files: pa.Table) -> list[Key]:
    columns = (files[name].to_pylist() for name in ("file_path", "content", "content_offset", "snapshot_id"))
    return [((path, content, offset), snapshot_id) for path, content, offset, snapshot_id in zip(*columns, strict=True)]


class _Files:
    """The files of one content in both snapshots."""

    def __init__(self, label: str, content: int, before: PlanningMetadata, after: PlanningMetadata) -> None:
        self.label, self.content, self.before, self.after = f"{label} files", content, before, after
        tables = [state.data_files if content == DATA else state.delete_files for state in (before, after)]
        self.earlier, self.later = (live_files(table) for table in tables)
        self.old, self.new = _keys(self.earlier), _keys(self.later)
        self.common = set(self.old) & set(self.new)

    def explained(self, commits: Sequence[Commit], removed_by: Callable[[int], set[FileKey]]) -> list[Check]:
        """Which commit added and removed what, and what none of them did."""
        added = self._rows(self.later, self.new)
        gone = self._rows(self.earlier, self.old)
        remover = {file: commit.snapshot_id for commit in commits if gone for file in removed_by(commit.snapshot_id)}
        came: dict[int | None, list[Key]] = defaultdict(list)
        went: dict[int | None, list[Key]] = defaultdict(list)
        known = {commit.snapshot_id for commit in commits}
        for key in added:
            came[key[1] if key[1] in known else None].append(key)
        for key in gone:
            went[remover.get(key[0])].append(key)
        rows = added | gone
        expected = sum(self.earlier["record_count"].to_pylist()) + sum(added.values()) - sum(gone.values())
        told = [
            self._told(commit, came[commit.snapshot_id], went[commit.snapshot_id], rows)
            for commit in commits
            if commit.snapshot_id in came or commit.snapshot_id in went
        ]
        return [
            *told,
            none(f"{self.label} added by no commit", sorted(key[0][0] for key in came[None])),
            none(f"{self.label} lost without a commit that removed them", sorted(key[0][0] for key in went[None])),
            equal(f"{self.label} listed once", len(set(self.new)), len(self.new)),
            equal(f"rows in {self.label}", sum(self.later["record_count"].to_pylist()), expected),
        ]

    def _rows(self, files: pa.Table, keys: Sequence[Key]) -> dict[Key, int]:
        """The rows of each file that is not in both."""
        counts = files["record_count"].to_pylist()
        return {key: rows for key, rows in zip(keys, counts, strict=True) if key not in self.common}

    def _told(self, commit: Commit, added: Sequence[Key], removed: Sequence[Key], rows: Mapping[Key, int]) -> Check:
        observed = ", ".join(
            f"{len(keys):,} {verb} ({counted(sum(rows[key] for key in keys), 'row')})"
            for verb, keys in (("added", added), ("removed", removed))
            if keys
        )
        objection = commit.objection(self.content, len(added), len(removed))
        return Check(
            name=f"{self.label} of {commit}",
            success=objection is None,
            observed=observed,
            expected=objection or observed,
        )

    def kept(self, trimmed: set[int | None]) -> list[Check]:
        """What is in both snapshots is the same, but for what trims of these specs took."""
        earlier, later = (
            ordered(files.filter(pa.array([key in self.common for key in keys], pa.bool_())))
            for files, keys in ((self.earlier, self.old), (self.later, self.new))
        )
        if len(earlier) != len(later):  # listed twice, which has its own check
            return []
        statistics = recorded_statistics(earlier, later)
        mine = pc.is_in(earlier["spec_id"], pa.array(sorted(spec for spec in trimmed if spec is not None), pa.int32()))
        untouched = pc.invert(mine)
        changed = [n for n in statistics if not earlier[n].filter(untouched).equals(later[n].filter(untouched))]
        return [
            *entry_checks(self.label, earlier, later, self.after.info, changed),
            *(_trimmed(earlier.filter(mine), later.filter(mine), statistics) if trimmed else ()),
            *(self._bytes(bool(trimmed)) if len(self.common) == len(self.old) == len(self.new) else ()),
        ]

    def _bytes(self, trimmed: bool) -> list[Check]:
        """Bytes of all columns' statistics, those that are not recorded file by file too."""
        if not trimmed:
            return [statistics_bytes(self.label.split()[0], self.before, self.after, self.content)]
        earlier, later = (column_bytes(state, self.content)[0] for state in (self.before, self.after))
        grown = [
            f"column {field_id}: {size} of {earlier.get(field_id, 0)} bytes"
            for field_id, size in sorted(later.items())
            if size > earlier.get(field_id, 0)
        ]
        return [none("columns with more statistics than before the trim (bytes)", grown)]


def _trimmed(earlier: pa.Table, later: pa.Table, statistics: Sequence[str]) -> list[Check]:
    """Statistics after trims: gone, or a bound that is shorter and still one; counts go only with the bounds."""
    wrong = [name for name in statistics if not _less(name, earlier[name], later[name])]
    unpaired = [
        f"{count}.{field}"
        for field in sorted({name.partition(".")[2] for name in statistics})
        for count in _COUNTS
        if _lost_alone(earlier, later, f"{count}.{field}", [f"{bound}.{field}" for bound in _BOUNDS])
    ]
    return [
        none("statistics that are no trimmed ones", wrong),
        none("counts that were lost while bounds stayed", unpaired),
    ]


def _less(name: str, earlier: pa.ChunkedArray, later: pa.ChunkedArray) -> bool:
    differs = pc.and_(pc.is_valid(later), pc.fill_null(pc.not_equal(earlier, later), True))
    pairs = zip(earlier.filter(differs).to_pylist(), later.filter(differs).to_pylist(), strict=True)
    statistic = name.partition(".")[0]
    if statistic not in _BOUNDS:
        return not pc.any(differs, min_count=0).as_py()
    return all(old is not None and still_bounds(old, new, upper=statistic == "upper_bound") for old, new in pairs)


def _lost_alone(earlier: pa.Table, later: pa.Table, count: str, bounds: Sequence[str]) -> bool:
    if count not in later.column_names:
        return False
    lost = pc.and_(pc.is_valid(earlier[count]), pc.is_null(later[count]))
    return any(
        pc.any(pc.and_(lost, pc.is_valid(later[bound])), min_count=0).as_py()
        for bound in bounds
        if bound in later.column_names
    )
