"""How a server cuts one plan into an inline batch and tokens, and the order that makes the cuts repeatable.

Source of the rules: the server-side scan planning design of Apache Gravitino, and the Iceberg REST specification.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from planning_health.errors import InputError

BATCH_SIZE = 100
"""File scan tasks of one response, unless configured."""


@dataclass(frozen=True)
class Batching:
    """The responses that deliver one plan.

    Attributes:
        tasks: file scan tasks of the plan.
        batch_size: tasks of one response; 0 puts all into the first.
        inline: tasks in the plan response.
        tokens: plan-tasks in the plan response; without any the field is absent, not empty.
        requests: the plan request and one per token.
        last_batch: tasks in the last response.
    """

    tasks: int
    batch_size: int
    inline: int
    tokens: int
    requests: int
    last_batch: int

    def slices(self) -> list[tuple[int, int]]:
        """(offset, limit) of every token; the inline batch comes before them."""
        return [(number * self.batch_size, self.batch_size) for number in range(1, self.tokens + 1)]


def batch(tasks: int, batch_size: int = BATCH_SIZE) -> Batching:
    """Cuts a plan of ``tasks`` tasks into batches.

    Raises:
        InputError: one of the numbers is negative.
    """
    for name, value in (("tasks", tasks), ("batch_size", batch_size)):
        if value < 0:
            raise InputError(f"{name} {value}: expected at least 0")
    if batch_size == 0 or tasks <= batch_size:
        return Batching(tasks, batch_size, inline=tasks, tokens=0, requests=1, last_batch=tasks)
    requests = -(-tasks // batch_size)
    last = tasks - (requests - 1) * batch_size
    return Batching(tasks, batch_size, inline=batch_size, tokens=requests - 1, requests=requests, last_batch=last)


@dataclass(frozen=True)
class ScanTask:
    """What identifies one file scan task within a snapshot.

    Attributes:
        location: path of the data file.
        start: first byte.
        length: bytes.
        data_sequence_number: when the file's rows were added; None when not known.
        file_sequence_number: when the file was added; None when not known.
        manifest_location: path of the manifest; None when not known.
        manifest_position: physical position of the entry in its manifest; None when not known.
    """

    location: str
    start: int
    length: int
    data_sequence_number: int | None = None
    file_sequence_number: int | None = None
    manifest_location: str | None = None
    manifest_position: int | None = None

    def sort_key(self) -> tuple[object, ...]:
        """Orders by all fields; texts by UTF-16 units as Java compares them, missing values before others."""
        manifest = None if self.manifest_location is None else utf16_key(self.manifest_location)
        optional = (self.data_sequence_number, self.file_sequence_number, manifest, self.manifest_position)
        return (
            utf16_key(self.location),
            self.start,
            self.length,
            *((value is not None, value) if value is not None else (False,) for value in optional),
        )


def total_order(tasks: Sequence[ScanTask]) -> list[int]:
    """Indexes of the tasks in the order in which they are batched.

    Planning returns tasks in no repeatable order, and one path can stand in several manifest entries. Sequence numbers
    and the entry's place make the order total, so that a plan computed again has the same batches.
    """
    return sorted(range(len(tasks)), key=lambda index: tasks[index].sort_key())


def utf16_key(text: str) -> bytes:
    """Compares as Java compares strings: by UTF-16 units, not by code points."""
    return text.encode("utf-16-be", "surrogatepass")
