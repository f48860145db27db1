"""What commands print: one JSON document or tables for people on standard output, all else on standard error."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

from rich.console import Console, ConsoleDimensions, JustifyMethod
from rich.markdown import Markdown
from rich.markup import escape
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

from planning_health.progress import listening
from planning_health.wording import visible_lines

MOST_ROWS: Final = 10_000
"""Rows of a table for people; ``--json`` has them all."""

_WIDE: Final = 200


class _WideInPipes(Console):
    """A console whose width in a file or a pipe, which have none, holds whole names, unless COLUMNS says another."""

    @property
    def size(self) -> ConsoleDimensions:
        size = super().size
        given = self._width is not None or self.is_terminal or os.environ.get("COLUMNS", "").isdigit()
        return size if given else ConsoleDimensions(_WIDE, size.height)

    @size.setter
    def size(self, new_size: tuple[int, int]) -> None:
        self._width, self._height = new_size


console = _WideInPipes()
errors = _WideInPipes(stderr=True)

LEVEL_STYLES = {"ok": "green", "warning": "yellow", "critical": "bold red", "failed": "red"}


def print_json(document: Any) -> None:
    """Prints one JSON document on standard output."""
    text = json.dumps(document, ensure_ascii=False, allow_nan=False)
    sys.stdout.write(text.encode("utf-8", "backslashreplace").decode() + "\n")  # half a surrogate pair: its JSON escape


def plain(text: object) -> str:
    """Text from outside (names, predicates, paths) as Rich markup that shows it as it is.

    Square brackets stay brackets; characters that control a terminal or cannot be encoded are shown as escapes.
    """
    return escape(visible_lines(str(text)))


def say(text: object, *, wrap: bool = False, to: Console = console) -> None:
    """Prints text from outside on a line of its own; ``wrap`` breaks it between words, else it stays whole to copy."""
    to.print(plain(text), highlight=False, soft_wrap=not wrap)


@contextmanager
def working(description: str) -> Iterator[Progress]:
    """Shows on a terminal's standard error what long work is at; nothing in a file or a pipe."""
    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(bar_width=24), TimeElapsedColumn())
    with Progress(*columns, console=errors, transient=True, disable=not errors.is_terminal) as shown:
        bar = shown.add_task(plain(description), total=None)

        def tell(text: str, done: int, total: int) -> None:
            shown.update(bar, description=plain(text), completed=done if total else None, total=total or None)

        with listening(tell):
            yield shown


def print_markdown(text: str) -> None:
    """Prints Markdown: rendered on a terminal, as it is into a file or a pipe."""
    if console.is_terminal:
        console.print(Markdown(text))
    else:
        say(text, to=console)


def print_table(
    columns: Sequence[str],
    rows: Iterable[Sequence[Any]],
    title: str | None = None,
    *,
    whole: Collection[str] = (),
) -> None:
    """Prints a table for people; numbers are right-aligned, ``None`` reads "not measured".

    Columns that are ``whole`` are not broken, however narrow the terminal: the others fold.
    """
    rows = [list(row) for row in rows]
    table = Table(
        title=None if title is None else plain(title), title_justify="left", header_style="bold", pad_edge=not whole
    )
    for index, column in enumerate(columns):
        numeric = bool(rows) and all(isinstance(row[index], int | float) or row[index] is None for row in rows)
        side: JustifyMethod = "right" if numeric else "left"
        table.add_column(plain(column), justify=side, overflow="fold", no_wrap=column in whole)
    for row in rows[:MOST_ROWS]:
        table.add_row(*(_cell(value) for value in row))
    console.print(table)
    if len(rows) > MOST_ROWS:
        say(f"… and {len(rows) - MOST_ROWS:,} rows more: --json has them all")


def level(text: str) -> str:
    """A level in its colour, as Rich markup."""
    style = LEVEL_STYLES.get(text)
    return f"[{style}]{plain(text)}[/]" if style else plain(text)


def _cell(value: Any) -> str:
    if value is None:
        return "[dim]not measured[/]"
    if isinstance(value, float):
        return f"{value:,.3f}".rstrip("0").rstrip(".")
    if isinstance(value, int):
        return f"{value:,}"
    text = str(value)
    return level(text) if text in LEVEL_STYLES else plain(text)
