"""Which tables there are, and which of them are measured: those that a rule of the settings includes."""

from __future__ import annotations

import logging

from planning_health.catalog_contents import namespaces_below, other_catalog_names, tables_in
from planning_health.catalogs.pyiceberg_catalog import load_pyiceberg_catalog
from planning_health.errors import InputError, told
from planning_health.identifiers import TableName
from planning_health.settings.models import SettingsDocument

logger = logging.getLogger(__name__)


def discover_tables(settings: SettingsDocument) -> list[TableName]:
    """All tables of the settings' catalogs that a rule includes, sorted.

    Raises:
        InputError: when a catalog cannot be reached.
    """
    return [table for table in all_tables(settings) if settings.includes(table)]


def all_tables(settings: SettingsDocument) -> list[TableName]:
    """All tables of the settings' catalogs, sorted; that a catalog holds none is logged, with why where that is known.

    Raises:
        InputError: when a catalog cannot be reached.
    """
    return sorted({table for name in settings.catalogs for table in _tables_of(settings, name)})


def _tables_of(settings: SettingsDocument, name: str) -> list[TableName]:
    catalog = load_pyiceberg_catalog(settings, name)
    try:
        found = [table for namespace in namespaces_below(catalog) for table in tables_in(catalog, name, namespace)]
        if not found:
            other = other_catalog_names(catalog)
            logger.warning("catalog %r holds no tables%s", name, f": {other}" if other else "")
    except Exception as error:
        raise InputError(f"catalog {name!r} cannot be listed: {told(error)}") from error
    return found
