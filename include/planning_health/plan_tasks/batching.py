"""How a server cuts one plan into an inline batch and tokens, and the order that makes the cuts repeatable.

Source of the rules: the server-side scan planning design of Apache Gravitino, and the Iceberg REST specification.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

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
class TaskTable:
    """What identifies the file scan tasks of a plan within their snapshot; row i is the i-th task that was planned.

    Attributes:
        locations: paths of the data files.
        starts: first byte.
        lengths: bytes.
        data_sequence_numbers: when the file's rows were added; null when not known.
        file_sequence_numbers: when the file was added; null when not known.
        manifest_locations: path of the manifest; null when not known.
        manifest_positions: physical position of the entry in its manifest; null when not known.
    """

    locations: pa.StringArray
    starts: pa.Int64Array
    lengths: pa.Int64Array
    data_sequence_numbers: pa.Int64Array
    file_sequence_numbers: pa.Int64Array
    manifest_locations: pa.StringArray
    manifest_positions: pa.Int64Array


def total_order(tasks: TaskTable) -> npt.NDArray[np.int64]:
    """Row indexes of the tasks in the order in which they are batched: by all columns, nulls first.

    Planning returns tasks in no repeatable order, and one path can stand in several manifest entries. Sequence numbers
    and the entry's place make the order total, so that a plan computed again has the same batches. Texts compare by
    UTF-16 units, as in Java.
    """
    columns = [
        _utf16_comparable(tasks.locations),
        tasks.starts,
        tasks.lengths,
        *_nulls_first(tasks.data_sequence_numbers),
        *_nulls_first(tasks.file_sequence_numbers),
        *_nulls_first(_utf16_comparable(tasks.manifest_locations)),
        *_nulls_first(tasks.manifest_positions),
    ]
    names = [str(number) for number in range(len(columns))]
    order = pc.sort_indices(pa.table(columns, names), sort_keys=[(name, "ascending") for name in names])
    return np.asarray(order, dtype=np.int64)


def _nulls_first(column: pa.Array) -> tuple[pa.Array, pa.Array]:
    """A sort key that puts nulls first, whichever way this version of Arrow spells that, and the column."""
    return column.is_valid().cast(pa.int8()), column


def _utf16_comparable(texts: pa.StringArray) -> pa.Array:
    """A column whose bytes sort as the texts do by UTF-16 units; ASCII texts do so as they are."""
    if pc.all(pc.string_is_ascii(texts)).as_py() is not False:
        return texts
    encoded = [None if text is None else text.encode("utf-16-be") for text in texts.to_pylist()]
    return pa.array(encoded, pa.binary())
