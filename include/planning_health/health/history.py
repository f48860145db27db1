"""The history: an Iceberg table in the user's catalog with one row a value, appended by each run.

Rows of a run replace what the same run wrote before, so that a retried task does not double them. Rows are dropped by
whole months once they are older than the retention: that touches metadata only.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

import pyarrow as pa
from pyiceberg.catalog import Catalog
from pyiceberg.exceptions import CommitFailedException
from pyiceberg.expressions import And, BooleanExpression, EqualTo, LessThan, Not
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.transforms import MonthTransform
from pyiceberg.types import DoubleType, LongType, NestedField, StringType, TimestamptzType
from tenacity import retry, retry_if_exception_type, stop_after_attempt, wait_random_exponential

from planning_health.catalogs import load_pyiceberg_catalog
from planning_health.errors import InputError, PlanningHealthError, WorkFailedError
from planning_health.identifiers import TableName
from planning_health.redaction import first_line
from planning_health.settings import SettingsDocument

_ATTEMPTS: Final = 5
_MEASURED_AT: Final = 2

SCHEMA: Final = Schema(
    NestedField(1, "run_id", StringType(), required=True),
    NestedField(_MEASURED_AT, "measured_at", TimestamptzType(), required=True),
    NestedField(3, "catalog", StringType(), required=True),
    NestedField(4, "namespace", StringType(), required=True),
    NestedField(5, "table_name", StringType(), required=True),
    NestedField(6, "table_uuid", StringType(), required=False),
    NestedField(7, "snapshot_id", LongType(), required=False),
    NestedField(8, "scope", StringType(), required=True),
    NestedField(9, "scope_key", StringType(), required=True),
    NestedField(10, "signal", StringType(), required=True),
    NestedField(11, "value", DoubleType(), required=False),
    NestedField(12, "unit", StringType(), required=True),
    NestedField(13, "level", StringType(), required=True),
    NestedField(14, "product_version", StringType(), required=True),
)
"""``value`` null means not measured."""

PARTITIONING: Final = PartitionSpec(PartitionField(_MEASURED_AT, 1000, MonthTransform(), "measured_at_month"))

PROPERTIES: Final = {
    "format-version": "2",
    "commit.manifest-merge.enabled": "true",
    "commit.manifest.min-count-to-merge": "20",
    "write.metadata.delete-after-commit.enabled": "true",
    "write.metadata.previous-versions-max": "20",
}


@dataclass(frozen=True)
class HistoryRow:
    """One value of one run; the fields are the history table's columns."""

    run_id: str
    measured_at: datetime
    catalog: str
    namespace: str
    table_name: str
    table_uuid: str | None
    snapshot_id: int | None
    scope: str
    scope_key: str
    signal: str
    value: float | None
    unit: str
    level: str
    product_version: str


def namespace_text(table: TableName) -> str:
    """A table's namespace as the history holds it: its levels joined by dots."""
    return ".".join(table.namespace)


def history_table(settings: SettingsDocument) -> TableName:
    """The configured history table.

    Raises:
        InputError: when none is configured.
    """
    if settings.history is None:
        raise InputError("no history table is configured: settings need history.catalog")
    return settings.history.table_name


def append_rows(settings: SettingsDocument, run_id: str, rows: Sequence[HistoryRow]) -> bool:
    """Writes a run's rows in place of those that the run wrote before, and drops months beyond the retention.

    The table is created when it is missing. Conflicts with another writer are retried.

    Returns:
        Whether old months were dropped.

    Raises:
        InputError: when no history is configured, or its catalog needs Spark or cannot be reached.
        WorkFailedError: when the table has other columns, other writers win five times, or writing fails.
    """
    name = history_table(settings)
    catalog = load_pyiceberg_catalog(settings, name.catalog)
    arrow = pa.Table.from_pylist([asdict(row) for row in rows], schema=SCHEMA.as_arrow())
    cutoff = _first_of_month(datetime.now(UTC) - timedelta(days=settings.retention.history_days))

    @retry(
        retry=retry_if_exception_type(CommitFailedException),
        stop=stop_after_attempt(_ATTEMPTS),
        wait=wait_random_exponential(multiplier=0.2, max=5),
        reraise=True,
    )
    def commit() -> bool:
        return _replace_run(_open_or_create(catalog, name), run_id, arrow, cutoff)

    try:
        return commit()
    except CommitFailedException as error:
        raise WorkFailedError(f"history table {name}: other writers won {_ATTEMPTS} times") from error
    except PlanningHealthError:
        raise
    except Exception as error:  # each catalog and store has its own exceptions; all mean the same here
        reason = f"{type(error).__name__}: {first_line(error)}"
        raise WorkFailedError(f"history table {name} cannot be written: {reason}") from error


def read_history(settings: SettingsDocument, table: TableName, *, since: datetime | None = None) -> pa.Table:
    """The recorded values of one table, oldest first; empty when the history does not exist yet.

    Args:
        settings: name the history table and its catalog.
        table: whose values.
        since: leave out what was measured before.

    Raises:
        InputError: when no history is configured, or its catalog needs Spark or cannot be reached.
    """
    name = history_table(settings)
    catalog = load_pyiceberg_catalog(settings, name.catalog)
    if not catalog.table_exists(name.identifier):
        return SCHEMA.as_arrow().empty_table()
    wanted: BooleanExpression = And(
        _equal("catalog", table.catalog),
        _equal("namespace", namespace_text(table)),
        _equal("table_name", table.name),
    )
    if since is not None:
        wanted = And(wanted, Not(_before(since)))
    scan = catalog.load_table(name.identifier).scan(row_filter=wanted)
    return scan.to_arrow().sort_by([("measured_at", "ascending"), ("run_id", "ascending")])


def _open_or_create(catalog: Catalog, name: TableName) -> Table:
    if not catalog.table_exists(name.identifier):
        for depth in range(1, len(name.namespace) + 1):
            catalog.create_namespace_if_not_exists(name.namespace[:depth])
        return catalog.create_table_if_not_exists(
            name.identifier, SCHEMA, partition_spec=PARTITIONING, properties=PROPERTIES
        )
    table = catalog.load_table(name.identifier)
    missing = sorted(_columns(SCHEMA) - _columns(table.schema()))
    if missing:
        raise WorkFailedError(f"history table {name} exists with other columns: it lacks {', '.join(missing)}")
    return table


def _columns(schema: Schema) -> set[str]:
    return {field.name for field in schema.fields}


def _replace_run(table: Table, run_id: str, rows: pa.Table, cutoff: datetime) -> bool:
    older = _before(cutoff)
    with table.transaction() as transaction:
        outdated = _any_file(table, older)
        if outdated:
            transaction.delete(older)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Delete operation did not match any records")
            transaction.overwrite(
                rows, overwrite_filter=_equal("run_id", run_id), snapshot_properties={"planning-health.run-id": run_id}
            )
    return outdated


def _any_file(table: Table, row_filter: BooleanExpression) -> bool:
    tasks: Iterable[object] = table.scan(row_filter=row_filter).plan_files()
    return any(True for _ in tasks)


def _first_of_month(moment: datetime) -> datetime:
    return moment.replace(day=1, hour=0, minute=0, second=0, microsecond=0)


def _equal(column: str, value: str) -> BooleanExpression:
    return EqualTo(column, value)  # type: ignore[call-arg, arg-type]  # PyIceberg types the fields, not its __init__


def _before(moment: datetime) -> BooleanExpression:
    return LessThan("measured_at", moment.isoformat())  # type: ignore[call-arg, arg-type]
