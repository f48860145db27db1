"""Step: diagnoses one measured table."""

from __future__ import annotations

from typing import Any

from planning_health.envelope import Envelope, Headline
from planning_health.health.analysis import analyse
from planning_health.health.thresholds import resolve_thresholds
from planning_health.identifiers import TableName
from planning_health.metadata import PlanningMetadata
from planning_health.run_folder import RunFolder
from planning_health.settings import SettingsDocument
from planning_health.stages.measure import queried_columns
from planning_health.stages.table_stage import Outcome, run_table_stage

KIND = "health"

_HEADLINE = (
    "manifests",
    "data_manifests",
    "delete_manifests",
    "manifest_bytes",
    "data_files",
    "deleted_ratio",
    "delete_files",
    "dangling_delete_files",
    "statistics_share",
    "metadata_to_data",
)


def diagnose(settings: SettingsDocument, run_folder: RunFolder, table: TableName) -> Envelope:
    """Writes the table's ``health`` result: signals, findings, the two lists, the six steps.

    The planning result of the same run is read when it is there already.
    """
    thresholds = resolve_thresholds(settings.rule_for(table))
    planning = run_folder.read_result("planning", table)

    def work(metadata: PlanningMetadata) -> Outcome:
        data = analyse(
            metadata,
            thresholds,
            filter_columns=queried_columns(settings, table),
            planning=planning.data if planning and planning.status == "ok" else None,
        )
        return Outcome(_headline(data), data)

    return run_table_stage(run_folder, table, KIND, work)


def _headline(data: dict[str, Any]) -> Headline:
    table = {item["signal"]: item["value"] for item in data["signals"] if item["scope"] == "table"}
    levels = [finding["level"] for finding in data["findings"]]
    depths = [item["mean"] for item in data["overlap"] if item["mean"] is not None]
    ranges = [item["value"] for item in data["signals"] if item["signal"] == "partition_range_days"]
    measured = [value for value in ranges if value is not None]
    return {name: table[name] for name in _HEADLINE} | {
        "overlap_depth_mean": max(depths, default=None),
        "partition_range_days": max(measured, default=None),
        "findings": len(levels),
        "critical": levels.count("critical"),
        "warning": levels.count("warning"),
    }
