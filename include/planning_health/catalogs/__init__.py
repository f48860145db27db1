"""One catalog definition serves both engines: PyIceberg and Spark."""

from planning_health.catalogs.definition import require_spark_catalog
from planning_health.catalogs.discovery import discover_tables
from planning_health.catalogs.pyiceberg_catalog import load_pyiceberg_catalog
from planning_health.catalogs.spark_catalog import spark_conf, spark_session
from planning_health.identifiers import TableName, quote_identifier, sql_string

__all__ = [
    "TableName",
    "discover_tables",
    "load_pyiceberg_catalog",
    "quote_identifier",
    "require_spark_catalog",
    "spark_conf",
    "spark_session",
    "sql_string",
]
