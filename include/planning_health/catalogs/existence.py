"""Whether the tables that somebody names exist: said before anything is done."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby

from planning_health.catalog_contents import no_such_table
from planning_health.catalogs.pyiceberg_catalog import SparkOnlyError, load_pyiceberg_catalog
from planning_health.identifiers import TableName
from planning_health.settings.models import SettingsDocument


def check_existence(settings: SettingsDocument, tables: Iterable[TableName]) -> None:
    """Checks that tables exist, as far as PyIceberg can tell: a damaged one does, and some catalogs need Spark.

    Raises:
        InputError: naming the first that does not, and what was perhaps meant, or a catalog that is not defined or
            cannot be opened.
    """
    for name, named in groupby(sorted(tables), key=lambda table: table.catalog):
        try:
            catalog = load_pyiceberg_catalog(settings, name)
        except SparkOnlyError:
            continue
        for table in named:
            try:
                exists = catalog.table_exists(table.identifier)
            except Exception:  # noqa: S112  # whatever is wrong with a table that is there, its measurement says it
                continue
            if not exists:
                raise no_such_table(catalog, table)
