"""Compares two snapshots of a table exactly: the proof that a metadata rewrite changed nothing but the layout."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
from pydantic import BaseModel, ConfigDict

from planning_health.maintenance.layout import live_files
from planning_health.metadata.model import DATA, DELETED, DELETES, PlanningMetadata, TableInfo
from planning_health.metadata.single_values import decode

COMPARED_COLUMNS: Final = 32
"""Of so many columns statistics are compared file by file; of the others the sums of their bytes are."""

_MAX_EXAMPLES: Final = 3
_LAYOUT: Final = frozenset({"manifest_ordinal", "position", "status"})
"""Where an entry stands: the rewrite's whole purpose."""

_IDENTITY: Final = ("file_path", "content", "content_offset")
"""What makes an entry the same one: deletion vectors share a Puffin file."""

_COMPARED_BY_VALUE: Final = frozenset({"first_row_id", "partition"})

_ORDER: Final = (*_IDENTITY, "spec_id", "sequence_number", "file_sequence_number", "snapshot_id")


class Check(BaseModel):
    """One thing that was compared."""

    model_config = ConfigDict(frozen=True)

    name: str
    success: bool
    observed: Any = None
    expected: Any = None


class VerificationReport(BaseModel):
    """The outcome of comparing two snapshots."""

    model_config = ConfigDict(frozen=True)

    before_snapshot_id: int | None
    after_snapshot_id: int | None
    checks: list[Check]

    @property
    def success(self) -> bool:
        """Whether every check held."""
        return all(check.success for check in self.checks)

    def failures(self) -> str:
        """The failed checks in one line."""
        return "; ".join(
            f"{check.name}: {check.observed}, expected {check.expected}" for check in self.checks if not check.success
        )

    def with_check(self, check: Check) -> VerificationReport:
        """The report with one more check."""
        return self.model_copy(update={"checks": [*self.checks, check]})

    def as_json(self) -> dict[str, Any]:
        """The report as a result file holds it."""
        return {"success": self.success, **self.model_dump()}


def compare_snapshots(before: PlanningMetadata, after: PlanningMetadata) -> VerificationReport:
    """Compares what two recorded snapshots of one table hold.

    Equal must be: the set of live data and delete files with their content, spec, partition, rows, size, snapshot id,
    both sequence numbers and recorded statistics; the statistics of all other columns, by their bytes. A row id that
    a file had stays; a file without one may get it (v3 upgraded from v2). Every manifest of the later snapshot must
    have the size and the counts that the manifest list says.

    Args:
        before: the earlier snapshot.
        after: the later one; its recording is the proof that each of its manifests can be read.
    """
    return report_of(before, after, [*content_checks(before, after), statistics_bytes("data", before, after, DATA)])


def content_checks(before: PlanningMetadata, after: PlanningMetadata) -> list[Check]:
    """All checks of :func:`compare_snapshots` but that of the data files' statistics in bytes."""
    uuids = before.info.table_uuid, after.info.table_uuid
    return [
        equal("the same table", uuids[1], uuids[0]),
        *_compare_files("data files", before.data_files, after.data_files, after.info),
        *_compare_files("delete files", before.delete_files, after.delete_files, after.info),
        statistics_bytes("delete", before, after, DELETES),
        *manifest_checks(after),
    ]


def report_of(before: PlanningMetadata, after: PlanningMetadata, checks: list[Check]) -> VerificationReport:
    """The report of these checks."""
    return VerificationReport(
        before_snapshot_id=before.info.snapshot_id, after_snapshot_id=after.info.snapshot_id, checks=checks
    )


def equal(name: str, observed: Any, expected: Any) -> Check:
    """A check that two values are the same."""
    return Check(name=name, success=observed == expected, observed=observed, expected=expected)


def none(name: str, offenders: list[str]) -> Check:
    """A check that nothing offends; a few offenders are named."""
    shown = ", ".join(offenders[:_MAX_EXAMPLES])
    observed = f"{len(offenders)} ({shown})" if offenders else 0
    return Check(name=name, success=not offenders, observed=observed, expected=0)


def ordered(files: pa.Table) -> pa.Table:
    """The live files in an order that does not depend on where they stand."""
    return live_files(files).sort_by([(name, "ascending") for name in _ORDER])


def _compare_files(label: str, before: pa.Table, after: pa.Table, info: TableInfo) -> list[Check]:
    earlier, later = ordered(before), ordered(after)
    checks = [
        equal(f"number of {label}", len(later), len(earlier)),
        equal(f"rows in {label}", pc.sum(later["record_count"]).as_py(), pc.sum(earlier["record_count"]).as_py()),
    ]
    if not all(earlier[name].equals(later[name]) for name in _IDENTITY):
        lost = set(earlier["file_path"].to_pylist()) - set(later["file_path"].to_pylist())
        added = set(later["file_path"].to_pylist()) - set(earlier["file_path"].to_pylist())
        same = Check(name=f"the same {label}", success=False, observed="another set", expected="the same set")
        return [*checks, same, none(f"{label} lost", sorted(lost)), none(f"{label} added", sorted(added))]
    statistics = [name for name in recorded_statistics(earlier, later) if not earlier[name].equals(later[name])]
    return [*checks, *entry_checks(label, earlier, later, info, statistics)]


def recorded_statistics(earlier: pa.Table, later: pa.Table) -> list[str]:
    """The columns of counts and bounds that both recordings have."""
    return [name for name in earlier.column_names if "." in name and name in later.column_names]


def entry_checks(
    label: str, earlier: pa.Table, later: pa.Table, info: TableInfo, changed_statistics: Sequence[str]
) -> list[Check]:
    """Checks that the same entries, in the same order, say the same; which statistics differ the caller judges."""
    attributes = [name for name in earlier.column_names if "." not in name and name not in _LAYOUT | _COMPARED_BY_VALUE]
    changed = [name for name in attributes if not earlier[name].equals(later[name])] + list(changed_statistics)
    if not _same_partitions(earlier, later, info):
        changed.append("partition")
    return [
        Check(name=f"the same {label}", success=True, observed=len(later), expected=len(earlier)),
        none(f"attributes of {label} changed", changed),
        _row_ids(label, earlier, later, info.format_version),
    ]


def _same_partitions(earlier: pa.Table, later: pa.Table, info: TableInfo) -> bool:
    """Whether partition values are equal; a rewrite writes those of promoted columns in the wider type."""
    if earlier["partition"].equals(later["partition"]):
        return True
    types = {spec_id: info.partition_types(spec) for spec_id, spec in info.specs.items()}
    columns = [earlier["spec_id"], earlier["partition"], later["partition"]]
    rows = zip(*(column.to_pylist() for column in columns), strict=True)
    return all(
        old == new
        or all(
            kind is not None and a is not None and b is not None and decode(a, kind) == decode(b, kind)
            for a, b, kind in zip(old, new, types[spec_id], strict=True)
            if a != b
        )
        for spec_id, old, new in rows
    )


def _row_ids(label: str, earlier: pa.Table, later: pa.Table, format_version: int) -> Check:
    """A known first row id stays; an unknown one may be assigned from format version 3 on."""
    had = pc.is_valid(earlier["first_row_id"])
    changed = pc.and_(had, pc.fill_null(pc.not_equal(earlier["first_row_id"], later["first_row_id"]), True))
    if format_version < 3:
        changed = pc.or_(changed, pc.and_(pc.invert(had), pc.is_valid(later["first_row_id"])))
    return none(f"first row ids of {label} changed", later.filter(changed)["file_path"].to_pylist())


def statistics_bytes(label: str, before: PlanningMetadata, after: PlanningMetadata, content: int) -> Check:
    """Bytes of all columns' statistics: the same, or fewer where DELETED entries were dropped with theirs."""
    earlier, dropped_from = column_bytes(before, content)
    later, remaining = column_bytes(after, content)
    success = later == earlier if remaining == dropped_from else later.keys() <= earlier.keys()
    if success and remaining != dropped_from:
        success = all(count <= earlier[column] for column, count in later.items())
    return Check(
        name=f"statistics in {label} manifests (bytes before compression)",
        success=success,
        observed=sum(later.values()),
        expected=sum(earlier.values()),
    )


def column_bytes(metadata: PlanningMetadata, content: int) -> tuple[dict[int, int], int]:
    """Bytes of statistics by column, over the manifests of this content, and how many DELETED entries these hold."""
    manifests = metadata.manifests.filter(pc.equal(metadata.manifests["content"], content))
    total: dict[int, int] = {}
    for columns in manifests["statistics_bytes"].to_pylist():
        for column in columns or ():
            total[column["field_id"]] = total.get(column["field_id"], 0) + column["bytes"]
    return total, pc.sum(manifests["entries_deleted"]).as_py() or 0


def manifest_checks(after: PlanningMetadata) -> list[Check]:
    """Whether a snapshot's manifests are what its manifest list says, and were read."""
    rows = after.manifests.select(
        ["path", "length", "file_size", "ordinal", "content", "min_sequence_number"]
        + [f"{kind}_files_count" for kind in ("added", "existing", "deleted")]
        + [f"entries_{kind}" for kind in ("added", "existing", "deleted")]
    ).to_pylist()
    lowest = lowest_sequence_numbers(after.data_files) | lowest_sequence_numbers(after.delete_files)
    return [
        Check(name="manifests read", success=True, observed=len(rows), expected=len(rows)),
        none("manifests of another size than listed", [r["path"] for r in rows if r["length"] != r["file_size"]]),
        none("manifests with other counts than listed", [r["path"] for r in rows if not _counts_agree(r)]),
        none(
            "manifests whose minimum sequence number is too high",
            [r["path"] for r in rows if lowest.get(r["ordinal"], r["min_sequence_number"]) < r["min_sequence_number"]],
        ),
        equal("manifests listed once", len({r["path"] for r in rows}), len(rows)),
    ]


def _counts_agree(row: dict[str, Any]) -> bool:
    return all(
        row[f"{kind}_files_count"] in (None, row[f"entries_{kind}"]) for kind in ("added", "existing", "deleted")
    )


def lowest_sequence_numbers(files: pa.Table) -> dict[int, int]:
    """The lowest data sequence number of each manifest's live entries."""
    live = files.filter(pc.not_equal(files["status"], DELETED))
    grouped = live.group_by("manifest_ordinal").aggregate([("sequence_number", "min")])
    return dict(zip(grouped["manifest_ordinal"].to_pylist(), grouped["sequence_number_min"].to_pylist(), strict=True))
