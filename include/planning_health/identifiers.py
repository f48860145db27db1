"""Table names: parsing, display, and the quoting that keeps them out of harm in Spark SQL and in paths."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final
from urllib.parse import quote, unquote

from planning_health.errors import InputError

_PLAIN_PART: Final = re.compile(r"[A-Za-z0-9_]+")
_PART: Final = re.compile(r"`((?:[^`]|``)+)`|([^.`]+)")

METADATA_TABLES: Final = frozenset({"entries", "files", "history", "manifests", "partitions", "refs", "snapshots"})
"""The metadata tables that the product reads."""


def quote_identifier(part: str) -> str:
    """One identifier in Spark SQL's back quotes; a back quote inside is doubled.

    Raises:
        InputError: for a name with ``${``: Spark would put a variable's value there, before it parses.
    """
    if "${" in part:
        raise InputError(f"name {part!r} cannot be used in Spark SQL: Spark replaces what begins with '${{'")
    return _quoted(part)


def _quoted(part: str) -> str:
    return "`" + part.replace("`", "``") + "`"


def sql_string(value: str) -> str:
    r"""A Spark SQL string literal.

    Back slashes and quotes are escaped, since Spark unescapes string literals by default
    (``spark.sql.parser.escapedStringLiterals=false``); so is the beginning of a variable, which it would replace by
    the value, say of an environment variable.
    """
    escaped = value.replace("\\", "\\\\").replace("'", "\\'").replace("\n", "\\n").replace("\r", "\\r")
    escaped = escaped.replace("${", "\\u0024{")
    return f"'{escaped}'"


def _display_part(part: str) -> str:
    return part if _PLAIN_PART.fullmatch(part) else _quoted(part)


@dataclass(frozen=True, order=True)
class TableName:
    """A table's full name: catalog, namespace levels, and its own name, each as it is stored."""

    catalog: str
    namespace: tuple[str, ...]
    name: str

    @classmethod
    def parse(cls, text: str) -> TableName:
        """Reads ``catalog.namespace.table``; a part with other characters than letters, digits and _ is back-quoted.

        Raises:
            InputError: when the text has fewer than three parts, an empty part or an unbalanced back quote.
        """
        parts: list[str] = []
        position = 0
        while position <= len(text):
            match = _PART.match(text, position)
            if match is None or (match.end() < len(text) and text[match.end()] != "."):
                break
            quoted, plain = match.groups()
            parts.append(quoted.replace("``", "`") if quoted is not None else plain)
            position = match.end() + 1
        if position != len(text) + 1 or len(parts) < 3 or any(not part.strip() for part in parts):
            raise InputError(
                f"table name {text!r} is not of the form catalog.namespace.table (back quotes around parts with dots)"
            )
        return cls(parts[0], tuple(parts[1:-1]), parts[-1])

    @property
    def identifier(self) -> tuple[str, ...]:
        """Namespace levels and name, as PyIceberg takes them."""
        return (*self.namespace, self.name)

    @property
    def dotted(self) -> str:
        """All parts joined by dots without quotes: what patterns in the settings are matched against."""
        return ".".join((self.catalog, *self.identifier))

    @property
    def sql(self) -> str:
        """The name in Spark SQL, each part quoted."""
        return ".".join(quote_identifier(part) for part in (self.catalog, *self.identifier))

    def metadata_table_sql(self, metadata_table: str) -> str:
        """A metadata table of this table in Spark SQL.

        Raises:
            InputError: when the metadata table is not one of ``METADATA_TABLES``.
        """
        if metadata_table not in METADATA_TABLES:
            raise InputError(f"metadata table {metadata_table!r} is not one of {', '.join(sorted(METADATA_TABLES))}")
        return f"{self.sql}.{quote_identifier(metadata_table)}"

    @property
    def path_segment(self) -> str:
        """Namespace and name percent-encoded into one folder name; see :meth:`from_path_segment`."""
        return ".".join(quote(part, safe="").replace(".", "%2E") for part in self.identifier)

    @classmethod
    def from_path_segment(cls, catalog: str, segment: str) -> TableName:
        """The inverse of :attr:`path_segment`."""
        *namespace, name = (unquote(part) for part in segment.split("."))
        return cls(catalog, tuple(namespace), name)

    def __str__(self) -> str:
        """The name as :meth:`parse` reads it."""
        return ".".join(_display_part(part) for part in (self.catalog, *self.identifier))
