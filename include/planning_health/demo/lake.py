"""Builds the demonstration lake: Iceberg tables written by Spark, each with a planning trouble of its own."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, as_completed
from typing import TYPE_CHECKING, Final

from planning_health.demo.tables import DEMO_TABLES, DemoTable, TableWriter
from planning_health.errors import InputError
from planning_health.identifiers import TableName, quote_identifier, sql_string

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

VERSION_PROPERTY: Final = "planning-health.demo.version"
"""Table property: the version of the lake that a table was finished for. It marks the tables that may be replaced."""

LAKE_VERSION: Final = "1"
_UNFINISHED: Final = "unfinished"
_TABLES_AT_ONCE: Final = 3  # a small commit keeps the driver busy, not the executors

Progress = Callable[[TableName, int, int], None]
"""Called after each table with its name, how many tables are done, and how many there are to build."""


def demo_table_names(catalog: str = "lake") -> list[TableName]:
    """The names of the lake's tables, sorted."""
    return sorted(_name(catalog, table) for table in DEMO_TABLES)


def build_lake(spark: SparkSession, catalog: str = "lake", *, progress: Progress | None = None) -> list[TableName]:
    """Builds what is missing of the demonstration lake, and leaves its finished tables as they are.

    Tables left unfinished by an interrupted build, or made by another version of the lake, are built anew.

    Args:
        spark: a session with the catalog configured and Iceberg's SQL extensions.
        catalog: the catalog's name in the session.
        progress: told about each table that was built; in the calling thread.

    Returns:
        The names of all tables of the lake, sorted.

    Raises:
        InputError: when a table of that name exists that is not the demonstration's.
    """
    missing = [table for table in DEMO_TABLES if not _is_finished(spark, _name(catalog, table))]
    for namespace in sorted({table.identifier[0] for table in missing}):
        spark.sql(f"CREATE NAMESPACE IF NOT EXISTS {quote_identifier(catalog)}.{quote_identifier(namespace)}")
    with ThreadPoolExecutor(_TABLES_AT_ONCE, thread_name_prefix="demo-lake") as pool:
        builds = {pool.submit(_build, spark, _name(catalog, table), table): table for table in missing}
        try:
            for done, build in enumerate(as_completed(builds), start=1):
                build.result()
                if progress:
                    progress(_name(catalog, builds[build]), done, len(missing))
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return demo_table_names(catalog)


def _name(catalog: str, table: DemoTable) -> TableName:
    *namespace, name = table.identifier
    return TableName(catalog, tuple(namespace), name)


def _is_finished(spark: SparkSession, name: TableName) -> bool:
    if not spark.catalog.tableExists(name.sql):
        return False
    version = TableWriter(spark, name).java_table().properties().get(VERSION_PROPERTY)
    if version is None:
        raise InputError(f"table {name} exists and is not the demonstration lake's: give the lake a catalog of its own")
    return bool(version == LAKE_VERSION)


def _build(spark: SparkSession, name: TableName, table: DemoTable) -> None:
    # No PURGE: it would have to read the manifest that one of the tables lacks.
    spark.sql(f"DROP TABLE IF EXISTS {name.sql}")
    properties = {"format-version": "2", **table.properties, VERSION_PROPERTY: _UNFINISHED}
    pairs = ", ".join(f"{sql_string(key)} = {sql_string(value)}" for key, value in properties.items())
    partitioning = f"PARTITIONED BY ({table.partitioned_by})" if table.partitioned_by else ""
    spark.sql(f"CREATE TABLE {name.sql} ({table.columns}) USING iceberg {partitioning} TBLPROPERTIES ({pairs})")
    table.fill(TableWriter(spark, name))
    spark.sql(f"ALTER TABLE {name.sql} SET TBLPROPERTIES ({sql_string(VERSION_PROPERTY)} = {sql_string(LAKE_VERSION)})")
