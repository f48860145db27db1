"""Progress of long work: logged, so that a task's log shows it, and told to whoever listens, such as a terminal."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final

logger = logging.getLogger(__name__)

Listener = Callable[[str, int, int], None]
"""What is being done, how many parts are done, and how many there are (0: not known)."""

_listener: Final[ContextVar[Listener | None]] = ContextVar("progress_listener", default=None)


@contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """Tells the listener of all progress while the context lasts."""
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)


def progress(text: str, done: int = 0, total: int = 0) -> None:
    """Says what has been done, or begins."""
    logger.info("%s", f"{text} ({done} of {total})" if total else text)
    if listener := _listener.get():
        listener(text, done, total)
