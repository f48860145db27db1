"""A PyIceberg catalog from a catalog definition in Iceberg's own keys."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final
from urllib.parse import quote

from pyiceberg.catalog import Catalog, load_catalog

from planning_health.catalogs.definition import properties, secrets, sqlite_path
from planning_health.errors import InputError
from planning_health.redaction import first_line
from planning_health.settings.models import SettingsDocument

_JDBC_POSTGRESQL: Final = re.compile(r"jdbc:postgresql://(?P<rest>.+)")


def pyiceberg_properties(iceberg: dict[str, str]) -> dict[str, str]:
    """Translates Iceberg's catalog properties to PyIceberg's.

    Only the JDBC catalog differs: its type is called ``sql`` and its address is SQLAlchemy's.

    Raises:
        InputError: for a JDBC address of a database that PyIceberg's SQL catalog does not support.
    """
    translated = {key: value for key, value in iceberg.items() if not key.startswith("jdbc.")}
    if iceberg.get("type") == "jdbc":
        translated |= {"type": "sql", "uri": _sqlalchemy_url(iceberg), "init_catalog_tables": "false"}
    if iceberg.get("type") == "hadoop":
        raise InputError("a Hadoop catalog cannot be read through PyIceberg: measure it with Spark")
    return translated


def _sqlalchemy_url(iceberg: dict[str, str]) -> str:
    uri = iceberg.get("uri", "")
    if path := sqlite_path(uri):
        return f"sqlite:///{path}"
    if match := _JDBC_POSTGRESQL.fullmatch(uri):
        user, password = iceberg.get("jdbc.user", ""), iceberg.get("jdbc.password")
        login = quote(user, safe="") + (f":{quote(password, safe='')}" if password else "")
        return f"postgresql+psycopg2://{login}@{match['rest']}" if login else f"postgresql+psycopg2://{match['rest']}"
    raise InputError(
        f"catalog uri {uri!r} is not supported without Spark; expected jdbc:sqlite:… or jdbc:postgresql://…"
    )


def load_pyiceberg_catalog(settings: SettingsDocument, catalog: str) -> Catalog:
    """Opens a catalog of the settings with PyIceberg.

    Raises:
        InputError: when it is not defined, a secret is missing, or it cannot be reached.
    """
    merged = properties(settings, catalog) | secrets(settings, catalog)
    path = sqlite_path(merged.get("uri", ""))
    if path and not Path(path).exists():  # SQLite would create an empty one
        raise InputError(f"catalog {catalog!r} cannot be opened: {path} does not exist")
    try:
        return load_catalog(catalog, **pyiceberg_properties(merged))
    except InputError:
        raise
    except Exception as error:  # each catalog library has its own exceptions; all mean the same to the user
        raise InputError(
            f"catalog {catalog!r} cannot be opened: {type(error).__name__}: {first_line(error)}"
        ) from error
