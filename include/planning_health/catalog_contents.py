"""What a catalog holds, and why a table is not there: what was perhaps meant, or the name its database knows."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from difflib import get_close_matches
from typing import TYPE_CHECKING, Final

from pyiceberg.catalog import Catalog

from planning_health.errors import InputError
from planning_health.identifiers import TableName
from planning_health.redaction import first_line
from planning_health.suggestions import did_you_mean

if TYPE_CHECKING:
    from pyiceberg.catalog.sql import SqlCatalog

logger = logging.getLogger(__name__)

_NAMESPACES_LOOKED_INTO: Final = 3
_MOST_NAMED: Final = 20


def no_such_table(catalog: Catalog, table: TableName) -> InputError:
    """The error that a table does not exist, with what was perhaps meant as far as the catalog tells."""
    absent = f"table {str(table)!r} does not exist in catalog {table.catalog!r}"
    try:
        if other := other_catalog_names(catalog):
            return InputError(f"{absent}: {other}")
        return InputError(f"{absent}{did_you_mean(str(table), map(str, _similar(catalog, table)))}")
    except Exception as error:  # the table is missed; that its neighbours cannot be listed is no error of its own
        logger.info("what catalog %r holds cannot be listed: %s", table.catalog, first_line(error))
        return InputError(absent)


def other_catalog_names(catalog: Catalog) -> str:
    """What a database says whose tables all belong to catalogs of other names; empty where that is not so.

    In a JDBC or SQL catalog, each table is stored under the name that the catalog had where it was created
    (``iceberg_tables.catalog_name``), and under another name none of them is found.
    """
    if getattr(catalog, "engine", None) is None:  # spares other catalogs the import of SQLAlchemy
        return ""
    from pyiceberg.catalog.sql import SqlCatalog

    names = sorted(_names_in_database(catalog)) if isinstance(catalog, SqlCatalog) else []
    if not names or catalog.name in names:
        return ""
    more = f" and {len(names) - _MOST_NAMED:,} more" if len(names) > _MOST_NAMED else ""
    shown = f"{', '.join(map(repr, names[:_MOST_NAMED]))}{more}"
    return f"its database holds tables of catalog {shown} only: expected one of these names in the settings"


def namespaces_below(catalog: Catalog, parent: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """All namespaces of a catalog, nested ones too."""
    for namespace in catalog.list_namespaces(parent):
        if len(namespace) > len(parent) and namespace[: len(parent)] == parent:
            yield tuple(namespace)
            yield from namespaces_below(catalog, tuple(namespace))


def tables_in(catalog: Catalog, name: str, namespace: tuple[str, ...]) -> list[TableName]:
    """The tables right in a namespace."""
    return [TableName(name, tuple(found[:-1]), found[-1]) for found in catalog.list_tables(namespace)]


def _similar(catalog: Catalog, table: TableName) -> list[TableName]:
    """The table that is the same without quotes, else those of its namespace, or of the few with names close to it."""
    all_namespaces = list(namespaces_below(catalog))
    written = ".".join(table.identifier).lower()
    around = [namespace for namespace in all_namespaces if written.startswith(".".join(namespace).lower() + ".")]
    for namespace in around:
        for found in tables_in(catalog, table.catalog, namespace):
            if found.dotted.lower() == table.dotted.lower():
                return [found]
    namespaces = {".".join(namespace).lower(): namespace for namespace in all_namespaces}
    given = ".".join(table.namespace).lower()
    near = [given] if given in namespaces else get_close_matches(given, namespaces, n=_NAMESPACES_LOOKED_INTO)
    return [found for key in near for found in tables_in(catalog, table.catalog, namespaces[key])]


def _names_in_database(catalog: SqlCatalog) -> set[str]:
    from pyiceberg.catalog.sql import IcebergTables
    from sqlalchemy import select
    from sqlalchemy.orm import Session

    with Session(catalog.engine) as session:
        return set(session.scalars(select(IcebergTables.catalog_name).distinct()))
