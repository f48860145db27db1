"""The steps of an action as they happened: each with its outcome, reason and time."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from typing import Any

from planning_health.progress import progress
from planning_health.redaction import redact


@dataclass
class Step:
    """One step; ``status`` is ``ok``, ``skipped``, ``refused`` or ``failed``."""

    step: str
    status: str = "ok"
    reason: str | None = None
    started_at: str = field(default_factory=lambda: datetime.now(UTC).isoformat(timespec="milliseconds"))
    seconds: float = 0.0
    details: dict[str, Any] = field(default_factory=dict)

    def skip(self, reason: str) -> None:
        """Says that there was nothing to do."""
        self.status, self.reason = "skipped", reason


class StepLog:
    """Collects the steps in order."""

    def __init__(self) -> None:
        self.steps: list[Step] = []

    @contextmanager
    def step(self, name: str) -> Iterator[Step]:
        """Runs one step; an exception marks it failed, with its message, and goes on."""
        current = Step(name)
        self.steps.append(current)
        progress(f"{name.replace('_', ' ')} …")
        started = time.perf_counter()
        try:
            yield current
        except Exception as error:
            current.status = "failed"
            current.reason = redact(str(error)) or type(error).__name__
            raise
        finally:
            current.seconds = round(time.perf_counter() - started, 3)
            progress(f"{name.replace('_', ' ')}: {current.reason or current.status}, {current.seconds:.1f} s")

    def as_json(self) -> list[dict[str, Any]]:
        """The steps as the result file holds them."""
        return [asdict(step) for step in self.steps]
