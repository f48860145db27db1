"""Notifiers of Airflow's, for the tests: one that writes what it is given into a file, one that cannot."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from airflow.sdk import BaseNotifier


class FileNotifier(BaseNotifier):
    """Appends each message to a file, as a line of JSON."""

    template_fields = ("title", "text", "html_content")

    def __init__(self, path: str, title: str, text: str, html_content: str = "", note: str = "") -> None:
        super().__init__()
        self.path, self.title, self.text, self.html_content, self.note = path, title, text, html_content, note

    def notify(self, context: Any) -> None:
        """Writes the message."""
        message = {name: getattr(self, name) for name in ("title", "text", "html_content", "note")}
        with Path(self.path).open("a", encoding="utf-8") as file:
            file.write(json.dumps(message) + "\n")


class BrokenNotifier(BaseNotifier):
    """Cannot reach anybody."""

    def notify(self, context: Any) -> None:
        """Fails."""
        raise ConnectionError("no route to the chat")


def not_a_notifier() -> None:
    """A function, which is no notifier."""
