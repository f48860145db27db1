"""What commands print: one JSON document or tables for people on standard output, all else on standard error."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

console = Console()
errors = Console(stderr=True)

LEVEL_STYLES = {"ok": "green", "warning": "yellow", "critical": "bold red", "failed": "red"}


def print_json(document: Any) -> None:
    """Prints one JSON document on standard output."""
    sys.stdout.write(json.dumps(document, ensure_ascii=False, allow_nan=False) + "\n")


def print_table(columns: Sequence[str], rows: Iterable[Sequence[Any]], title: str | None = None) -> None:
    """Prints a table for people; numbers are right-aligned, ``None`` reads "not measured"."""
    rows = [list(row) for row in rows]
    table = Table(title=title, title_justify="left", header_style="bold")
    for index, column in enumerate(columns):
        numeric = bool(rows) and all(isinstance(row[index], int | float) or row[index] is None for row in rows)
        table.add_column(column, justify="right" if numeric else "left", overflow="fold")
    for row in rows:
        table.add_row(*(_cell(value) for value in row))
    console.print(table)


def level(text: str) -> str:
    """A level in its colour, as Rich markup."""
    style = LEVEL_STYLES.get(text)
    return f"[{style}]{escape(text)}[/]" if style else escape(text)


def _cell(value: Any) -> str:
    if value is None:
        return "[dim]not measured[/]"
    if isinstance(value, float):
        return f"{value:,.3f}".rstrip("0").rstrip(".")
    if isinstance(value, int):
        return f"{value:,}"
    text = str(value)
    return level(text) if text in LEVEL_STYLES else escape(text)
