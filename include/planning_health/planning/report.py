"""The JSON document of ``planning-health plan``: what each predicate reads of a table."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from planning_health.planning.predicates import parse_where
from planning_health.planning.scan import ScanPlanner, SimulatedScan

if TYPE_CHECKING:
    from collections.abc import Iterable

    from planning_health.metadata.model import PlanningMetadata


def plan_document(
    metadata: PlanningMetadata,
    wheres: Iterable[str],
    *,
    files: bool = False,
    zone: str = "UTC",
    now: dt.datetime | None = None,
) -> dict[str, Any]:
    """Plan predicates and describe the plans.

    Args:
        metadata: the recorded picture.
        wheres: predicates in Spark SQL.
        files: also list the matched files with their deletes.
        zone: the session time zone.
        now: the current time (aware); that of the recording by default.

    Raises:
        InputError: a predicate does not parse or does not fit the table.
    """
    planner = ScanPlanner(metadata)
    predicates = [
        predicate_document(plan_where(planner, where, zone=zone, now=now), where, files=files) for where in wheres
    ]
    return {"table": str(metadata.info.name), "snapshot_id": metadata.info.snapshot_id, "predicates": predicates}


def plan_where(planner: ScanPlanner, where: str, *, zone: str = "UTC", now: dt.datetime | None = None) -> SimulatedScan:
    """Plan a predicate in Spark SQL; see :func:`plan_document`. Without ``now`` the clock is the recording's."""
    info = planner.metadata.info
    now = now or dt.datetime.fromisoformat(info.measured_at)
    parsed = parse_where(where, info.schema, zone=zone, now=now, info=info)
    return replace(planner.plan(parsed.expression), not_pushed_down=parsed.not_pushed_down)


def predicate_document(scan: SimulatedScan, where: str, *, files: bool = False) -> dict[str, Any]:
    """Describe one plan; sizes in bytes."""
    report = scan.report
    document: dict[str, Any] = {
        "where": where,
        "filter": str(scan.filter),
        "not_pushed_down": list(scan.not_pushed_down),
        "not_recorded": list(scan.not_recorded),
        "data_manifests": {
            "total": report.total_data_manifests,
            "scanned": report.scanned_data_manifests,
            "skipped": report.skipped_data_manifests,
        },
        "delete_manifests": {
            "total": report.total_delete_manifests,
            "scanned": report.scanned_delete_manifests,
            "skipped": report.skipped_delete_manifests,
        },
        "data_files": {
            "total": scan.live_data_files,
            "result": report.result_data_files,
            "skipped": report.skipped_data_files,
        },
        "delete_files": {
            "attached": report.result_delete_files,
            "indexed_position": report.positional_delete_files,
            "indexed_equality": report.equality_delete_files,
            "indexed_dv": report.dvs,
            "skipped": report.skipped_delete_files,
        },
        "bytes": report.total_file_size_in_bytes,
        "delete_bytes": report.total_delete_file_size_in_bytes,
        "metadata_bytes": report.metadata_bytes,
        "splits": len(scan.splits()),
        "tasks": len(scan.combined_tasks()),
        "adaptive_split_size": False,
    }
    if files:
        document["files"] = _files(scan)
    return document


def _files(scan: SimulatedScan) -> list[dict[str, Any]]:
    sizes = scan.file_sizes().tolist()
    residuals = scan.residuals()
    deletes = scan.deletes()
    return [
        {"path": path, "bytes": size, "deletes": attached, "residual": str(residual)}
        for path, size, attached, residual in zip(scan.paths(), sizes, deletes, residuals, strict=True)
    ]
