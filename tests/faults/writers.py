"""What others may do to a table while it is maintained."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import date
from typing import Final

from tests.faults.lake import DAYS, Row, Table

Writer = Callable[[Table], None]


def append(table: Table) -> None:
    table.append(900)


def merging_append(table: Table) -> None:
    """Takes the measured manifests away: it merges them into its own."""
    table.set_properties({"commit.manifest-merge.enabled": "true", "commit.manifest.min-count-to-merge": "2"})
    table.sql("INSERT INTO {t} VALUES (901, DATE'2024-01-02', 'merged')")
    table.expected.append((901, date(2024, 1, 2), "merged"))
    table.set_properties({"commit.manifest-merge.enabled": "false"})
    for first in (910, 920):  # there is something to gain again
        table.append(first)


def delete_rows(table: Table) -> None:
    _without(table, lambda row: row[0] % 7 == 3, "id % 7 = 3")


def delete_partition(table: Table) -> None:
    _without(table, lambda row: row[0] % DAYS == 1, "d = DATE'2024-01-02'")


def _without(table: Table, gone: Callable[[Row], bool], where: str) -> None:
    table.sql(f"DELETE FROM {{t}} WHERE {where}")
    table.expected = [row for row in table.expected if not gone(row)]


def compact(table: Table) -> None:
    table.sql(f"CALL lake.system.rewrite_data_files(table => '{table.name.sql}', options => map('rewrite-all','true'))")


def expire(table: Table) -> None:
    java = table.java()
    java.expireSnapshots().expireOlderThan(int(time.time() * 1000)).retainLast(1).commit()


WRITERS: Final[dict[str, Writer]] = {
    "append": append,
    "merging_append": merging_append,
    "delete_rows": delete_rows,
    "delete_partition": delete_partition,
    "compaction": compact,
    "expiry": expire,
}
