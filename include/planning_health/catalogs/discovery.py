"""Which tables are measured: the catalogs' tables, filtered by the patterns of the settings."""

from __future__ import annotations

from collections.abc import Iterator

from pyiceberg.catalog import Catalog

from planning_health.catalogs.pyiceberg_catalog import load_pyiceberg_catalog
from planning_health.errors import InputError
from planning_health.identifiers import TableName
from planning_health.redaction import first_line
from planning_health.settings.models import SettingsDocument


def discover_tables(settings: SettingsDocument) -> list[TableName]:
    """All tables of the settings' catalogs that a rule includes, sorted.

    Raises:
        InputError: when a catalog cannot be reached.
    """
    found: list[TableName] = []
    for catalog_name in settings.catalogs:
        catalog = load_pyiceberg_catalog(settings, catalog_name)
        try:
            found += [
                TableName(catalog_name, tuple(identifier[:-1]), identifier[-1])
                for namespace in _namespaces(catalog)
                for identifier in catalog.list_tables(namespace)
            ]
        except Exception as error:
            raise InputError(
                f"catalog {catalog_name!r} cannot be listed: {type(error).__name__}: {first_line(error)}"
            ) from error
    return sorted(table for table in set(found) if settings.includes(table))


def _namespaces(catalog: Catalog, parent: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    for namespace in catalog.list_namespaces(parent):
        if len(namespace) > len(parent) and namespace[: len(parent)] == parent:
            yield tuple(namespace)
            yield from _namespaces(catalog, tuple(namespace))
