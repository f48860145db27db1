"""Reads a table without Spark and simulates its scan: what several commands start from."""

from __future__ import annotations

from collections.abc import Iterable

from planning_health.assignment import UnitTable
from planning_health.catalogs import load_pyiceberg_catalog
from planning_health.cli.options import snapshot_choice, table_name
from planning_health.errors import InputError
from planning_health.metadata import PlanningMetadata, record_with_pyiceberg
from planning_health.planning.expressions import ALWAYS_TRUE
from planning_health.planning.predicates import parse_where
from planning_health.planning.scan import simulate_scan
from planning_health.settings import SettingsDocument
from planning_health.stages.measure import queried_columns
from planning_health.stages.simulate_assignment import file_units


def read_table(
    settings: SettingsDocument,
    table: str,
    wheres: list[str],
    snapshot_id: int | None = None,
    ref: str | None = None,
    *,
    columns: Iterable[str] = (),
) -> PlanningMetadata:
    """Records a table's planning metadata into memory, read-only, through PyIceberg.

    Statistics are recorded of the columns of partitions, queries and predicates, and of ``columns``.

    Raises:
        InputError: for a name, catalog, table, snapshot or ref that does not exist.
        NotMeasurableError: when the table's metadata cannot be read.
    """
    name = table_name(settings, table)
    catalog = load_pyiceberg_catalog(settings, name.catalog)
    queried = queried_columns(settings, name, wheres) | set(columns)
    return record_with_pyiceberg(catalog, name, queried=queried, choice=snapshot_choice(snapshot_id, ref))


def units_of_table(
    settings: SettingsDocument, table: str, wheres: list[str] | None, snapshot_id: int | None, ref: str | None
) -> UnitTable:
    """The files that a scan with one predicate, or of the whole table, reads, as planning finds them.

    Raises:
        InputError: like :func:`read_table`; also for more than one predicate or one that cannot be understood.
    """
    if len(wheres or ()) > 1:
        raise InputError(f"--where was given {len(wheres or ())} times: expected one predicate here")
    metadata = read_table(settings, table, wheres or [], snapshot_id, ref)
    where = wheres[0] if wheres else None
    filter_ = parse_where(where, metadata.info.schema, info=metadata.info).expression if where else ALWAYS_TRUE
    return file_units(metadata, simulate_scan(metadata, filter_))
