"""Step: how a table's heaviest query spreads over tasks and workers."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import numpy as np
import pyarrow as pa

from planning_health.assignment import (
    AFFINITY_LIMITS,
    BALANCE_LIMITS,
    PLANNING_MAX_FILES,
    Assignment,
    Comparison,
    HomeShare,
    MembershipChange,
    PlannedWork,
    PlanningLimitError,
    TaskHints,
    UnitTable,
    compare,
    default_units,
    estimate_tasks,
    greedy_units,
    home_share,
    membership_change,
    planned_work,
    rank_workers,
)
from planning_health.assignment.task_count import BYTES_PER_PARTITION
from planning_health.envelope import Envelope, Headline
from planning_health.identifiers import TableName
from planning_health.metadata import PlanningMetadata
from planning_health.planning.expressions import AlwaysTrue
from planning_health.planning.scan import ScanPlanner, SimulatedScan
from planning_health.run_folder import RunFolder
from planning_health.settings import SettingsDocument
from planning_health.settings.models import AssignmentSettings
from planning_health.stages.heaviest_query import HeaviestQuery, heaviest_query, plan_query
from planning_health.stages.table_stage import Outcome, run_table_stage

KIND = "assignment"


def simulate_assignment(settings: SettingsDocument, run_folder: RunFolder, table: TableName) -> Envelope:
    """Compares default and greedy assignment, and the stability of file homes, for the heaviest query of a table.

    Args:
        settings: workers, partitions per task, number of tasks (one per worker without one) and strategy.
        run_folder: holds the measurement, and the planning result that names the heaviest query.
        table: the table.
    """
    query = heaviest_query(settings, run_folder, table)

    def work(metadata: PlanningMetadata) -> Outcome:
        planner = ScanPlanner(metadata)
        return _outcome(planner, plan_query(planner, query), query, settings.assignment)

    return run_table_stage(run_folder, table, KIND, work)


def _outcome(
    planner: ScanPlanner,
    scan: SimulatedScan,
    query: HeaviestQuery,
    model: AssignmentSettings,
) -> Outcome:
    units = file_units(planner.metadata, scan)
    planned = planned_work(
        units,
        has_predicate=not isinstance(scan.filter, AlwaysTrue),
        has_delete_files=bool(len(scan.delete_rows)),
    )
    hint = estimate_tasks(
        planned.bytes, target_partitions=model.partitions_per_task, files=planned.files, max_tasks=model.workers
    )
    counts = _task_counts(model, hint)
    comparisons = compare(units, counts)
    parts = _split_units(units, scan)
    split = compare(parts, counts)
    first = comparisons[0]
    chosen = (greedy_units if model.strategy == "greedy" else default_units)(units, first.tasks)
    affinity = _affinity(units, chosen, model.workers)
    data = {
        "query": asdict(query),
        "planned": asdict(planned),
        "largest_file_bytes": int(units.lengths.max()) if len(units) else 0,
        "planning_limit": _planning_limit(planned),
        "task_hint": {
            "tasks": hint,
            "workers": model.workers,
            "partitions_per_task": model.partitions_per_task,
            "bytes_per_partition": BYTES_PER_PARTITION,
        },
        "strategy": model.strategy,
        "comparisons": [asdict(comparison) for comparison in comparisons],
        "split": {
            "target_bytes": planner.split_options.target_size,
            "parts": len(parts),
            "largest_part_bytes": int(parts.lengths.max()) if len(parts) else 0,
            "comparisons": [asdict(comparison) for comparison in split],
        },
        "affinity": affinity,
        "limits": list(dict.fromkeys((*BALANCE_LIMITS, *AFFINITY_LIMITS))),
    }
    return Outcome(_headline(planned, hint, model.workers, first, split[0], affinity), data)


def file_units(metadata: PlanningMetadata, scan: SimulatedScan) -> UnitTable:
    """The matched files of a scan as units, in recorded order. All of them: a limit on planning is reported apart."""
    files = metadata.data_files.select(["file_path", "file_size_in_bytes", "record_count"])
    matched = files.take(pa.array(scan.data_rows))
    return UnitTable.from_arrays(
        matched["file_path"],
        matched["file_size_in_bytes"].to_numpy(),
        record_counts=matched["record_count"],
        planning_max_files=max(PLANNING_MAX_FILES, len(matched)),
    )


def _split_units(units: UnitTable, scan: SimulatedScan) -> UnitTable:
    """The parts that Iceberg makes of the files at the table's split target; neighbours within a task are one part."""
    pieces = [piece for task in scan.combined_tasks() for piece in task]
    return UnitTable.from_arrays(
        units.paths.take(pa.array([piece.file for piece in pieces], pa.int64())),
        np.array([piece.length for piece in pieces], dtype=np.uint64),
        starts=np.array([piece.offset for piece in pieces], dtype=np.uint64),
        planning_max_files=max(PLANNING_MAX_FILES, len(pieces)),
    )


def _task_counts(model: AssignmentSettings, hint: int) -> list[int]:
    """The configured number of tasks (one per worker without one) first, then others to compare it with."""
    first = model.tasks or model.workers
    others = {hint, model.workers, 2 * model.workers, 4 * model.workers} - {first}
    return [first, *sorted(others)]


def _planning_limit(planned: PlannedWork) -> dict[str, Any]:
    exceeded = planned.files > PLANNING_MAX_FILES
    return {
        "max_files": PLANNING_MAX_FILES,
        "exceeded": exceeded,
        "message": str(PlanningLimitError(PLANNING_MAX_FILES)) if exceeded else None,
    }


def _affinity(units: UnitTable, assignment: Assignment, workers: int) -> dict[str, Any]:
    """Homes of the assigned files on ``workers`` model workers, and what one more or one fewer changes."""
    paths, lengths = units.paths.to_pylist(), units.lengths.tolist()
    hints = TaskHints.of([[(paths[unit], lengths[unit]) for unit in group] for group in assignment.groups])
    urls = [f"http://worker-{number}/" for number in range(workers + 1)]
    now, more = rank_workers(hints, urls[:workers]), rank_workers(hints, urls)
    fewer = rank_workers(hints, urls[: workers - 1])
    return {
        "workers": list(now.workers),
        "tasks": len(hints),
        "preferred": now.preferred_counts(),
        "hinted_objects": [hints.objects(task) for task in range(len(hints))],
        "hinted_bytes": [hints.bytes(task) for task in range(len(hints))],
        "home": _share(home_share(hints, now)),
        "one_leaves": _change(membership_change(hints, now, fewer)) if workers > 1 else None,
        "one_joins": _change(membership_change(hints, now, more)),
    }


def _share(share: HomeShare) -> dict[str, Any]:
    return {**asdict(share), "fraction": share.fraction}


def _change(change: MembershipChange) -> dict[str, Any]:
    return {**asdict(change), "share": _share(change.share), "at_old_home": _share(change.at_old_home)}


def _headline(
    planned: PlannedWork, hint: int, workers: int, whole: Comparison, split: Comparison, affinity: dict[str, Any]
) -> Headline:
    leaves = affinity["one_leaves"]
    return {
        "files": planned.files,
        "bytes": planned.bytes,
        "workers": workers,
        "tasks_hinted": hint,
        "tasks": whole.tasks,
        "default_makespan": whole.default.makespan,
        "greedy_makespan": whole.greedy.makespan,
        "default_skew": whole.default.skew,
        "greedy_skew": whole.greedy.skew,
        "lower_bound": whole.lower_bound,
        "split_makespan": split.greedy.makespan,
        "home_fraction": affinity["home"]["fraction"],
        "home_fraction_one_leaves": leaves["share"]["fraction"] if leaves else None,
        "home_fraction_one_joins": affinity["one_joins"]["share"]["fraction"],
        "retained_bytes": whole.memory.retained_bytes,
        "scratch_bytes": whole.memory.scratch_bytes,
    }
