"""Planning health for Apache Iceberg tables: measure, predict, repair, verify, report."""

__version__ = "0.1.0"
