"""The frame of a per-table step: load the measurement, do the work, write the result, whatever happens."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from planning_health.envelope import Envelope, Headline
from planning_health.errors import PlanningHealthError
from planning_health.identifiers import TableName
from planning_health.metadata import PlanningMetadata, load
from planning_health.progress import progress
from planning_health.redaction import first_line
from planning_health.run_folder import RunFolder

logger = logging.getLogger(__name__)

MEASURE = "measure"
"""Kind of the run's result of the measure step: which tables were measured, and which failed."""

MEASUREMENT = "measurement"
"""Kind of the per-table result that the measure step writes."""

VALIDATION = "validation"
"""Kind of the validation, of each table and of the run; a failed integrity suite blocks the table's further steps."""


@dataclass(frozen=True)
class Outcome:
    """What a step found: headline numbers for the envelope, and the full data."""

    headline: Headline = field(default_factory=dict)
    data: Any = None


def run_table_stage(
    run_folder: RunFolder, table: TableName, kind: str, work: Callable[[PlanningMetadata], Outcome]
) -> Envelope:
    """Runs one step for one table and writes ``<kind>.json``.

    A table that was not measured, or whose recording did not pass validation, gives status ``skipped``; a step that
    fails gives ``failed`` with the reason. Neither raises, so that one table never stops the others.
    """
    measurement = run_folder.read_result(MEASUREMENT, table)
    if measurement is None or measurement.status != "ok":
        reason = (measurement.reason if measurement else None) or "the table was not measured in this run"
        return run_folder.write_result(kind, table=table, status="skipped", reason=f"not measured: {reason}")
    if _is_blocked(run_folder, table):
        reason = "the recording failed its integrity checks: see the run's validation"
        return run_folder.write_result(kind, table=table, status="skipped", reason=reason)
    started = time.perf_counter()
    try:
        outcome = work(load(run_folder.metadata_url(table)))
    except PlanningHealthError as error:
        logger.warning("%s of %s failed: %s", kind, table, error)
        reason = str(error)
    except Exception as error:  # one table's surprise must not hide the others' results
        logger.exception("%s of %s failed", kind, table)
        reason = f"{type(error).__name__}: {first_line(error)}"
    else:
        progress(f"{kind} of {table}: {time.perf_counter() - started:.1f} s")
        return run_folder.write_result(
            kind,
            table=table,
            table_uuid=measurement.table_uuid,
            snapshot_id=measurement.snapshot_id,
            headline=outcome.headline,
            data=outcome.data,
        )
    return run_folder.write_result(
        kind,
        table=table,
        table_uuid=measurement.table_uuid,
        snapshot_id=measurement.snapshot_id,
        status="failed",
        reason=reason,
    )


def _is_blocked(run_folder: RunFolder, table: TableName) -> bool:
    validation = run_folder.read_result(VALIDATION, table)
    return validation is not None and bool(validation.data["blocking"])
