"""The catalog behind the service, read-only: namespaces, tables, and their metadata as they stand at this moment."""

from __future__ import annotations

import gzip
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from pyiceberg.catalog import Catalog
from pyiceberg.exceptions import (
    ForbiddenError,
    NoSuchIdentifierError,
    NoSuchNamespaceError,
    NoSuchTableError,
    UnauthorizedError,
)
from pyiceberg.table.metadata import TableMetadata

from planning_health.catalogs.definition import properties
from planning_health.catalogs.pyiceberg_catalog import load_pyiceberg_catalog
from planning_health.errors import NotMeasurableError
from planning_health.identifiers import TableName
from planning_health.metadata.record import ReadBytes, reader
from planning_health.plan_tasks.service import rest_errors
from planning_health.redaction import first_line
from planning_health.settings import SettingsDocument

_GZIP: Final = b"\x1f\x8b"

_STORE_PROPERTIES: Final = ("s3.endpoint", "s3.path-style-access", "s3.region", "client.region", "gcs.project-id")
"""What clients need to find the data files, and is no secret; they bring credentials of their own."""


@dataclass(frozen=True)
class SourceTable:
    """A table as the catalog has it now.

    Attributes:
        name: its full name.
        metadata: its parsed metadata.
        location: where the metadata file lies.
        read: reads whole files of the table's store.
    """

    name: TableName
    metadata: TableMetadata
    location: str
    read: ReadBytes

    def metadata_json(self) -> bytes:
        """The metadata file as it was written, so that clients get what this library does not know as well.

        Where the catalog alone can read it, the metadata as the catalog gave it.
        """
        try:
            content = self.read(self.location)
        except NotMeasurableError:
            return self.metadata.model_dump_json().encode()
        return gzip.decompress(content) if content.startswith(_GZIP) else content


class CatalogSource:
    """One catalog of the settings.

    Args:
        settings: define the catalog.
        catalog: its name.

    Raises:
        InputError: the catalog is not defined or cannot be opened.
    """

    def __init__(self, settings: SettingsDocument, catalog: str) -> None:
        self.name = catalog
        self._catalog: Catalog = load_pyiceberg_catalog(settings, catalog)
        defined = properties(settings, catalog)
        self.store_properties = {key: defined[key] for key in _STORE_PROPERTIES if key in defined}

    def namespaces(self, parent: Sequence[str] = ()) -> list[tuple[str, ...]]:
        """The namespaces directly below another one, sorted."""
        with _translated(f"namespace {'.'.join(parent)!r}"):
            found = self._catalog.list_namespaces(tuple(parent))
        return sorted(tuple(namespace) for namespace in found)

    def namespace_properties(self, namespace: Sequence[str]) -> dict[str, str]:
        """A namespace's properties."""
        with _translated(f"namespace {'.'.join(namespace)!r}"):
            return {key: str(value) for key, value in self._catalog.load_namespace_properties(tuple(namespace)).items()}

    def tables(self, namespace: Sequence[str]) -> list[tuple[str, ...]]:
        """The identifiers of a namespace's tables, sorted."""
        with _translated(f"namespace {'.'.join(namespace)!r}"):
            if not self._catalog.namespace_exists(tuple(namespace)):
                raise NoSuchNamespaceError
            return sorted(tuple(identifier) for identifier in self._catalog.list_tables(tuple(namespace)))

    def table_exists(self, namespace: Sequence[str], name: str) -> bool:
        """Whether the catalog has this table; its metadata is not read."""
        with _translated(f"table {TableName(self.name, tuple(namespace), name)}"):
            return self._catalog.table_exists((*namespace, name))

    def load(self, namespace: Sequence[str], name: str) -> SourceTable:
        """Loads a table as it is now.

        Raises:
            RestError: it does not exist, or the catalog refuses or fails.
        """
        full = TableName(self.name, tuple(namespace), name)
        with _translated(f"table {full}"):
            table = self._catalog.load_table(full.identifier)
        return SourceTable(full, table.metadata, table.metadata_location, reader(table.io))


@contextmanager
def _translated(what: str) -> Iterator[None]:
    """Turns what catalog libraries raise into answers; messages of stores and databases stay in the log."""
    try:
        yield
    except rest_errors.RestError:
        raise
    except (NoSuchTableError, NoSuchIdentifierError):
        raise rest_errors.no_such_table(f"{what} does not exist") from None
    except NoSuchNamespaceError:
        kind = rest_errors.no_such_table if what.startswith("table ") else rest_errors.no_such_namespace
        raise kind(f"{what} does not exist") from None
    except (ForbiddenError, UnauthorizedError, PermissionError) as error:
        raise rest_errors.forbidden(f"{what}: the catalog refuses access ({type(error).__name__})") from error
    except FileNotFoundError as error:
        raise rest_errors.RestError(404, "NotFoundException", f"{what}: its metadata file is missing") from error
    except Exception as error:
        message = f"{what}: the catalog behind this service fails ({type(error).__name__}: {first_line(error)})"
        raise rest_errors.RestError(503, "ServiceUnavailableException", message) from error
