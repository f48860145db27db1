"""The demonstration lake's tables: their layout, and the commits that give each its particular trouble.

Every value is computed from the row's number with a hash, so each build writes the same rows. Dates are fixed, so the
example queries of ``settings.yaml`` always select something.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from planning_health.identifiers import TableName, sql_string

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FIRST_DAY: Final = "DATE'2026-01-01'"
_FIRST_SECOND: Final = "1767225600L"  # 2026-01-01T00:00:00Z
_DAY: Final = 86_400


@dataclass(frozen=True)
class TableWriter:
    """Commits to one table of the lake."""

    spark: SparkSession
    table: TableName

    def append(self, rows: int, *columns: str, first_id: int = 0, tasks: int = 1) -> None:
        """Appends ``rows`` rows as one snapshot, computed by SQL expressions over ``id`` = ``first_id``, +1, ….

        Each task writes one file per partition that it meets, without a shuffle.
        """
        ids = self.spark.range(first_id, first_id + rows, 1, tasks)
        writer = ids.selectExpr(*columns).writeTo(self.table.sql)
        writer.option("distribution-mode", "none").option("fanout-enabled", "true").append()

    def sql(self, statement: str) -> None:
        """Runs a statement; ``{table}`` stands for the quoted table name."""
        self.spark.sql(statement.format(table=self.table.sql)).collect()

    def rewrite_data_files(self, where: str) -> None:
        """Rewrites all data files that a predicate selects; delete files stay where they are."""
        self.sql(
            f"CALL `{self.table.catalog}`.system.rewrite_data_files(table => {sql_string(self.table.sql)}, "
            f"where => {sql_string(where)}, options => map('rewrite-all', 'true'))"
        )

    def lose_a_manifest(self) -> None:
        """Deletes the second manifest of the current snapshot from the store, as a careless clean-up would."""
        table = self.java_table()
        table.io().deleteFile(table.currentSnapshot().allManifests(table.io())[1].path())

    def java_table(self) -> Any:
        """The table as Iceberg's own ``org.apache.iceberg.Table``."""
        java = self.spark.sparkContext._jvm
        return java.org.apache.iceberg.spark.Spark3Util.loadIcebergTable(self.spark._jsparkSession, self.table.sql)


@dataclass(frozen=True)
class DemoTable:
    """One table of the lake.

    Attributes:
        identifier: namespace and name.
        columns: the column definitions in SQL.
        fill: makes the table's commits.
        partitioned_by: partition transforms in SQL; empty for an unpartitioned table.
        properties: table properties.
    """

    identifier: tuple[str, str]
    columns: str
    fill: Callable[[TableWriter], None]
    partitioned_by: str = ""
    properties: Mapping[str, str] = field(default_factory=dict)


def _pick(choices: int, seed: int) -> str:
    """SQL for an INT in [0, choices) that looks random and depends on ``id`` and the seed alone."""
    return f"CAST(pmod(xxhash64(id, {seed}L), {choices}) AS INT)"


def _one_of(seed: int, *values: str) -> str:
    """SQL for one of the strings."""
    return f"element_at(array({', '.join(sql_string(value) for value in values)}), 1 + {_pick(len(values), seed)})"


def _day(offset: str) -> str:
    """SQL for the date ``offset`` days after the lake's first day."""
    return f"date_add({FIRST_DAY}, CAST({offset} AS INT))"


def _instant(seconds: str) -> str:
    """SQL for the timestamp ``seconds`` after the lake's first day began in UTC, whatever the session's time zone."""
    return f"timestamp_seconds({_FIRST_SECOND} + CAST({seconds} AS BIGINT))"


def _amount(seed: int) -> str:
    return f"CAST({_pick(100_000, seed)} / 100 AS DECIMAL(12,2))"


# Manifests stay as the commits wrote them: merging would hide what the table is there to show.
_UNMERGED: Final = {"commit.manifest-merge.enabled": "false"}
_MERGE_ON_READ: Final = {
    "write.delete.mode": "merge-on-read",
    "write.update.mode": "merge-on-read",
    "write.merge.mode": "merge-on-read",
}

ORDERS_COMMITS: Final = 42
_ORDERS_HISTORY: Final = 90


def _orders(writer: TableWriter) -> None:
    for commit in range(ORDERS_COMMITS):
        late_by = f"IF(id % 20 < 8, 0, 1 + pmod(id % 12 * 7 + {3 * commit}, 88))"
        writer.append(
            600,
            "id AS order_id",
            f"{_day(f'{_ORDERS_HISTORY + commit} - {late_by}')} AS ordered_on",
            f"CAST({_pick(5_000, 1)} AS BIGINT) AS customer_id",
            f"{_one_of(2, 'DE', 'FR', 'IT', 'PL', 'SE')} AS country",
            f"{_one_of(3, 'placed', 'paid', 'shipped', 'returned')} AS status",
            f"1 + {_pick(9, 4)} AS quantity",
            f"{_amount(5)} AS amount",
            f"{_instant(f'{(_ORDERS_HISTORY + commit) * _DAY} + {_pick(_DAY, 6)}')} AS received_at",
            first_id=commit * 600,
        )


def _customers(writer: TableWriter) -> None:
    for commit in range(8):
        writer.append(
            400,
            "id AS customer_id",
            f"{_day(_pick(730, 1))} AS joined_on",
            "concat('customer-', hex(xxhash64(id, 2L)), '@example.com') AS email",
            f"{_one_of(3, 'basic', 'plus', 'gold')} AS tier",
            f"{_amount(4)} AS balance",
            first_id=commit * 400,
        )


def _invoices(writer: TableWriter) -> None:
    country = f"element_at(array('DE', 'FR', NULL, 'null'), 1 + {_pick(4, 1)})"
    for commit in range(6):
        writer.append(
            300,
            "id AS invoice_id",
            f"{_day(f'{20 * commit} + {_pick(60, 2)}')} AS issued_on",
            f"{country} AS country",
            f"{_amount(3)} AS total",
            first_id=commit * 300,
        )


def _daily_totals(writer: TableWriter) -> None:
    writer.sql("ALTER TABLE {table} WRITE LOCALLY ORDERED BY store_id")
    for commit in range(4):
        writer.append(
            10 * 3_000,
            f"{_day(f'{10 * commit} + (id - {commit * 30_000}) DIV 3000')} AS sold_on",
            f"{_pick(400, 1)} AS store_id",
            f"{_amount(2)} AS revenue",
            "xxhash64(id, 3L) / 1e6 AS margin",
            first_id=commit * 30_000,
        )


def _exchange_rates(writer: TableWriter) -> None:
    for commit in range(3):
        writer.append(
            200,
            f"{_day('id')} AS quoted_on",
            f"{_one_of(1, 'USD', 'GBP', 'SEK', 'PLN')} AS currency",
            f"{_pick(1_000_000, 2)} / 1e6 AS rate",
            first_id=commit * 200,
            tasks=2,
        )


def _nothing(writer: TableWriter) -> None:
    """An empty table has no snapshot."""


def _order_items(writer: TableWriter) -> None:
    for commit in range(3):
        writer.append(
            200,
            "id AS `Item ID`",
            f"concat({_one_of(1, 'AB', 'CD', 'EF')}, '-', {_pick(999, 2)}) AS `SKU.code`",
            f"{_day(f'{10 * commit} + {_pick(12, 3)}')} AS `ship-date`",
            first_id=commit * 200,
        )


def _tickets(writer: TableWriter) -> None:
    def insert(commit: int) -> None:
        writer.append(
            4_000,
            "id AS ticket_id",
            f"{_day('id % 240')} AS opened_on",
            f"{_one_of(1, 'billing', 'network', 'hardware')} AS team",
            f"1 + {_pick(4, 2)} AS priority",
            f"{_pick(600, 3)} AS minutes",
            first_id=commit * 4_000,
        )

    insert(0)
    insert(1)
    writer.sql("DELETE FROM {table} WHERE ticket_id % 17 = 3")
    writer.sql("ALTER TABLE {table} SET TBLPROPERTIES ('write.delete.granularity' = 'file')")
    writer.sql("UPDATE {table} SET priority = 1 WHERE ticket_id % 23 = 5")
    writer.sql(
        "MERGE INTO {table} t USING (SELECT explode(sequence(100L, 8100L, 40L)) AS ticket_id) s "
        "ON t.ticket_id = s.ticket_id WHEN MATCHED AND t.team = 'billing' THEN DELETE "
        "WHEN MATCHED THEN UPDATE SET minutes = t.minutes + 1"
    )
    insert(2)
    # New files carry the newest sequence number, so the deletes of these months apply to nothing any more.
    writer.rewrite_data_files("opened_on < DATE'2026-05-01'")


def _audit_log(writer: TableWriter) -> None:
    for commit in range(5):
        writer.append(
            360,
            "id AS entry_id",
            f"{_day(f'{6 * commit} + id % 12')} AS logged_on",
            f"{_one_of(1, 'login', 'export', 'grant')} AS action",
            "hex(xxhash64(id, 2L)) AS actor",
            first_id=commit * 360,
        )
    writer.sql("DELETE FROM {table} WHERE logged_on < DATE'2026-01-15'")


SENSOR_COMMITS: Final = 5
_SENSOR_HOURS: Final = 72
_SENSOR_ROWS_PER_HOUR: Final = 6
_SENSOR_COLUMNS: Final = {
    **{f"reading_{n:02}": ("DOUBLE", f"xxhash64(id, {100 + n}L) / 1e12") for n in range(60)},
    **{f"counter_{n:02}": ("BIGINT", f"xxhash64(id, {200 + n}L)") for n in range(15)},
    **{f"code_{n:02}": ("STRING", f"sha1(CAST(xxhash64(id, {300 + n}L) AS STRING))") for n in range(10)},
    **{f"level_{n:02}": ("DECIMAL(12,2)", _amount(400 + n)) for n in range(5)},
}


def _sensor_readings(writer: TableWriter) -> None:
    rows = _SENSOR_HOURS * _SENSOR_ROWS_PER_HOUR
    for commit in range(SENSOR_COMMITS):
        writer.append(
            rows,
            f"{_instant(f'id DIV {_SENSOR_ROWS_PER_HOUR} * 3600 + {_pick(3600, 1)}')} AS captured_at",
            f"CAST({_pick(500, 2)} AS BIGINT) AS device_id",
            f"{_one_of(3, 'north', 'south', 'harbour')} AS site",
            f"{_one_of(4, 'ok', 'late', 'fault')} AS status",
            *(f"{expression} AS {name}" for name, (_, expression) in _SENSOR_COLUMNS.items()),
            first_id=commit * rows,
            tasks=2,
        )


def _page_views(writer: TableWriter) -> None:
    def insert(commit: int, first_day: int, days: int) -> None:
        writer.append(
            400,
            "id AS view_id",
            f"{_instant(f'{first_day * _DAY} + {_pick(days * _DAY, 1)}')} AS viewed_at",
            f"concat('/product/', {_pick(300, 2)}) AS page",
            f"CAST({_pick(900, 3)} AS BIGINT) AS visitor_id",
            first_id=commit * 400,
        )

    for commit in range(4):
        insert(commit, 28 * commit, 60)
    writer.sql("ALTER TABLE {table} REPLACE PARTITION FIELD months(viewed_at) WITH days(viewed_at)")
    for commit in range(4, 8):
        insert(commit, 150 + 8 * (commit - 4), 16)


def _sessions(writer: TableWriter) -> None:
    for commit in range(2):
        writer.append(
            900,
            "id AS session_id",
            f"{_instant(f'id % 9 * {_DAY} + {_pick(_DAY, 1)}')} AS started_at",
            f"{_pick(3_600, 2)} AS seconds",
            f"{_one_of(3, 'web', 'ios', 'android')} AS platform",
            first_id=commit * 900,
        )
    writer.sql("DELETE FROM {table} WHERE session_id % 7 = 2")
    writer.sql("UPDATE {table} SET seconds = 0 WHERE session_id % 40 = 1")
    writer.sql("DELETE FROM {table} WHERE session_id % 11 = 4 AND started_at < TIMESTAMP'2026-01-04 00:00:00Z'")


def _uploads(writer: TableWriter) -> None:
    tenant = f"CAST(floor(40 * pow({_pick(1_000_000, 1)} / 1e6, 6)) AS STRING)"  # the first has half of all rows
    for commit in range(2):
        writer.append(
            60_000,
            "id AS upload_id",
            f"concat('tenant-', lpad({tenant}, 2, '0')) AS tenant",
            "xxhash64(id, 2L) AS checksum",
            f"{_pick(1_000_000_000, 3)} AS size",
            first_id=commit * 60_000,
        )


def _missing_manifest(writer: TableWriter) -> None:
    for commit in range(3):
        writer.append(90, "id", f"{_day(f'{3 * commit} + id % 3')} AS written_on", first_id=commit * 90)
    writer.lose_a_manifest()


DEMO_TABLES: Final = (
    DemoTable(
        ("sales", "orders"),
        "order_id BIGINT, ordered_on DATE, customer_id BIGINT, country STRING, status STRING, quantity INT, "
        "amount DECIMAL(12,2), received_at TIMESTAMP",
        _orders,
        "days(ordered_on)",
        # Small manifests let a repair cluster even so small a table into several of them.
        _UNMERGED | {"commit.manifest.target-size-bytes": "40960"},
    ),
    DemoTable(
        ("ops", "sensor_readings"),
        "captured_at TIMESTAMP, device_id BIGINT, site STRING, status STRING, "
        + ", ".join(f"{name} {sql_type}" for name, (sql_type, _) in _SENSOR_COLUMNS.items()),
        _sensor_readings,
        "hours(captured_at)",
        _UNMERGED,
    ),
    DemoTable(
        ("ops", "tickets"),
        "ticket_id BIGINT, opened_on DATE, team STRING, priority INT, minutes INT",
        _tickets,
        "months(opened_on)",
        _UNMERGED | _MERGE_ON_READ | {"write.delete.granularity": "partition"},
    ),
    DemoTable(
        ("ops", "sessions"),
        "session_id BIGINT, started_at TIMESTAMP, seconds INT, platform STRING",
        _sessions,
        "days(started_at)",
        _UNMERGED | _MERGE_ON_READ | {"format-version": "3"},
    ),
    DemoTable(
        ("ops", "page_views"),
        "view_id BIGINT, viewed_at TIMESTAMP, page STRING, visitor_id BIGINT",
        _page_views,
        "months(viewed_at)",
        _UNMERGED,
    ),
    DemoTable(
        ("ops", "audit_log"),
        "entry_id BIGINT, logged_on DATE, action STRING, actor STRING",
        _audit_log,
        "days(logged_on)",
        _UNMERGED,
    ),
    DemoTable(
        ("ops", "uploads"),
        "upload_id BIGINT, tenant STRING, checksum BIGINT, size INT",
        _uploads,
        "tenant",
        # Files are a thousand times smaller than in earnest, and so is what planning weighs them by.
        {"read.split.target-size": "131072", "read.split.open-file-cost": "4096"},
    ),
    DemoTable(
        ("sales", "customers"),
        "customer_id BIGINT, joined_on DATE, email STRING, tier STRING, balance DECIMAL(12,2)",
        _customers,
        "bucket(16, customer_id)",
        _UNMERGED | {"commit.manifest.target-size-bytes": "16384"},
    ),
    DemoTable(
        ("sales", "invoices"),
        "invoice_id BIGINT, issued_on DATE, country STRING, total DECIMAL(12,2)",
        _invoices,
        "months(issued_on), country",
        _UNMERGED,
    ),
    DemoTable(
        ("sales", "daily_totals"),
        "sold_on DATE, store_id INT, revenue DECIMAL(12,2), margin DOUBLE",
        _daily_totals,
        "days(sold_on)",
        _UNMERGED | {"write.target-file-size-bytes": "65536"},
    ),
    DemoTable(("sales", "exchange_rates"), "quoted_on DATE, currency STRING, rate DOUBLE", _exchange_rates),
    DemoTable(("sales", "returns"), "order_id BIGINT, returned_on DATE", _nothing, "days(returned_on)"),
    DemoTable(
        ("sales", "Order-Items v1.5"),
        "`Item ID` BIGINT, `SKU.code` STRING, `ship-date` DATE",
        _order_items,
        "truncate(2, `SKU.code`), days(`ship-date`)",
        _UNMERGED,
    ),
    DemoTable(
        ("broken", "missing_manifest"), "id BIGINT, written_on DATE", _missing_manifest, "days(written_on)", _UNMERGED
    ),
)
"""Slow tables first: they are built side by side."""
