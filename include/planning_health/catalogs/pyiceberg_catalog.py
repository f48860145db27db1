"""A PyIceberg catalog from a catalog definition in Iceberg's own keys."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final
from urllib.parse import quote

from pyiceberg.catalog import Catalog, load_catalog

from planning_health.catalogs.definition import definition, properties, secrets, sqlite_path
from planning_health.errors import InputError, told
from planning_health.settings.models import SettingsDocument

_JDBC_POSTGRESQL: Final = re.compile(r"jdbc:postgresql://(?P<rest>.+)")
_ADDRESSES: Final = {
    "jdbc": (r"jdbc:", "jdbc:sqlite:/path/of/catalog.db or jdbc:postgresql://host/database"),
    "sql": (r"(?!jdbc:)\w+(\+\w+)?://", "sqlite:////path/of/catalog.db or postgresql+psycopg2://host/database"),
    "rest": (r"https?://", "http://host or https://host"),
    "hive": (r"thrift://", "thrift://host:9083"),
}
"""How the ``uri`` of a catalog's type begins, and what it looks like."""
_SPARK_ONLY: Final = ("hadoop", "nessie")
_PYICEBERGS_OWN: Final = {"py-catalog-impl", "uri"}
_SQLALCHEMY_SQLITE: Final = "sqlite:///"
DEMO_URI: Final = "jdbc:sqlite:${home}/lake/catalog.db"
"""The address of the demonstration lake's catalog, in its settings."""
_EXTRAS: Final = {"boto3": "glue", "thrift": "hive", "psycopg2": "postgres"}
"""Which extra of this package brings a module that a catalog needs."""


class SparkOnlyError(InputError):
    """A catalog that Spark can open and PyIceberg cannot."""


def pyiceberg_properties(iceberg: dict[str, str]) -> dict[str, str]:
    """Translates Iceberg's catalog properties to PyIceberg's.

    Only the JDBC catalog differs: its type is called ``sql`` and its address is SQLAlchemy's. No database is made
    ready for a catalog: reading it changes nothing.

    Raises:
        SparkOnlyError: for a catalog that PyIceberg does not support.
    """
    translated = {key: value for key, value in iceberg.items() if not key.startswith("jdbc.")}
    kind = iceberg.get("type")
    if kind in _SPARK_ONLY or (kind is None and not _PYICEBERGS_OWN & iceberg.keys()):
        shown = f"type {kind!r}" if kind else f"catalog-impl {iceberg.get('catalog-impl')!r}"
        raise SparkOnlyError(f"a catalog of {shown} needs Spark: name tables, and measure them with --spark")
    if kind == "jdbc":
        translated |= {"type": "sql", "uri": _sqlalchemy_url(iceberg)}
    if kind in ("jdbc", "sql"):
        translated["init_catalog_tables"] = "false"
    return translated


def _sqlalchemy_url(iceberg: dict[str, str]) -> str:
    uri = iceberg.get("uri", "")
    if path := sqlite_path(uri):
        return f"{_SQLALCHEMY_SQLITE}{path}"
    if match := _JDBC_POSTGRESQL.fullmatch(uri):
        user, password = iceberg.get("jdbc.user", ""), iceberg.get("jdbc.password")
        login = quote(user, safe="") + (f":{quote(password, safe='')}" if password else "")
        return f"postgresql+psycopg2://{login}@{match['rest']}" if login else f"postgresql+psycopg2://{match['rest']}"
    raise SparkOnlyError(
        f"catalog uri {uri!r} is not supported without Spark: expected jdbc:sqlite:… or jdbc:postgresql://…, or name "
        "tables, and measure them with --spark"
    )


def load_pyiceberg_catalog(settings: SettingsDocument, catalog: str) -> Catalog:
    """Opens a catalog of the settings with PyIceberg.

    Raises:
        InputError: when it is not defined, a secret or a package is missing, or it cannot be reached.
    """
    given = properties(settings, catalog) | secrets(settings, catalog)
    _check_address(catalog, given)
    merged = pyiceberg_properties(given)
    uri = merged.get("uri", "")
    path = uri.removeprefix(_SQLALCHEMY_SQLITE) if uri.startswith(_SQLALCHEMY_SQLITE) else None
    if path and not Path(path).exists():  # SQLite would create an empty one
        of_demo = definition(settings, catalog).properties.get("uri") == DEMO_URI
        hint = _missing_file_hint(given["uri"], path, of_demo=of_demo)
        raise InputError(f"catalog {catalog!r} cannot be opened: {path} does not exist{hint}")
    try:
        return load_catalog(catalog, **merged)
    except Exception as error:  # each catalog library has its own exceptions; all mean the same to the user
        if missing := _missing_extra(error):
            raise InputError(f"catalog {catalog!r} cannot be opened: {missing}") from error
        at = f" at {given['uri']}" if "uri" in given else ""
        raise InputError(f"catalog {catalog!r} cannot be opened{at}: {told(error)}") from error


def _missing_file_hint(uri: str, path: str, *, of_demo: bool) -> str:
    """What to do about a SQLite file that is not there."""
    if of_demo:
        return (
            "; it is the demonstration lake's: `make demo` builds that; for tables of your own write a settings file: "
            "README.md, 'First use on your own catalog'"
        )
    if uri.startswith(_SQLALCHEMY_SQLITE) and not Path(path).is_absolute():
        return f" in the working folder; an absolute path needs four slashes: {_SQLALCHEMY_SQLITE}/{path}"
    return ""


def _check_address(catalog: str, iceberg: dict[str, str]) -> None:
    beginning, form = _ADDRESSES.get(iceberg.get("type", ""), ("", ""))
    uri = iceberg.get("uri", "")
    if form and not re.match(beginning, uri):
        what = f"uri {uri!r} is none of type {iceberg['type']!r}" if uri else f"type {iceberg['type']!r} needs a uri"
        raise InputError(f"catalog {catalog!r}: {what}: expected {form}")


def _missing_extra(error: BaseException | None) -> str | None:
    """Which extra to install, when the cause is a package that is not there."""
    while error is not None:
        module = (error.name or "").partition(".")[0] if isinstance(error, ModuleNotFoundError) else ""
        if module in _EXTRAS:
            return f"{module} is not installed: pip install '.[{_EXTRAS[module]}]'"
        error = error.__cause__ or error.__context__
    return None
