"""Tables with real rows of all types, and what is asked of them before and after a trim."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from planning_health.identifiers import TableName
from planning_health.maintenance.request import MaintenanceRequest
from planning_health.metadata.record_spark import load_java_table
from planning_health.run_folder import RunFolder
from planning_health.stages.act import act
from planning_health.stages.measure import measure
from planning_health.stages.propose import propose

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from planning_health.settings import SettingsDocument

NAMESPACE = "test_trim"
COLUMNS = (
    "id BIGINT, d DATE, s STRING, x DOUBLE, f FLOAT, n DECIMAL(12,2), ts TIMESTAMP, b BINARY, flag BOOLEAN, "
    "place STRUCT<lat: INT, name: STRING>, tags ARRAY<STRING>"
)
ROWS = (
    "id",
    "IF(id % 17 = 0, NULL, date_add(DATE'2024-01-01', CAST(id % 9 AS INT))) AS d",
    "CASE id % 11 WHEN 0 THEN NULL WHEN 1 THEN concat('\U0010ffff\U0010ffff\U0010ffff', id) WHEN 2 THEN 'abcd' "
    "ELSE concat(char(97 + CAST(id % 7 AS INT)), 'bcdé\ud7ff', sha1(CAST(id AS STRING))) END AS s",
    "IF(id % 13 = 0, double('NaN'), id / 7) AS x",
    "CAST(IF(id % 5 = 0, NULL, -id / 3) AS FLOAT) AS f",
    "CAST(id * 1.25 AS DECIMAL(12,2)) AS n",
    "timestamp_seconds(1704067200 + id * 3601) AS ts",
    "unhex(IF(id % 6 = 0, 'FFFFFFFF', sha1(CAST(id AS STRING)))) AS b",
    "id % 3 = 0 AS flag",
    "named_struct('lat', CAST(id % 50 AS INT), 'name', sha1(CAST(id AS STRING))) AS place",
    "array(CAST(id AS STRING)) AS tags",
)
PREDICATES = {
    "id": ["id = 77", "id < 30", "id >= 200"],
    "d": ["d = DATE'2024-01-03'", "d IS NULL"],
    "s": ["s = 'abcd'", "s > 'e'", "s LIKE 'cb%'", "s IS NULL", "s <> 'abcd'", "s >= '\U0010ffff\U0010ffff'"],
    "x": ["x > 30", "x IS NOT NULL"],
    "f": ["f < -60", "f IS NULL"],
    "n": ["n BETWEEN 100 AND 120"],
    "ts": ["ts < TIMESTAMP'2024-01-02 00:00:00Z'"],
    "b": ["b > X'F0'", "b = X'FFFFFFFF'"],
    "flag": ["flag = true"],
    "place.lat": ["place.lat = 7"],
    "place.name": ["place.name LIKE 'a%'"],
}
ALL_PREDICATES = [text for texts in PREDICATES.values() for text in texts]


@dataclass(frozen=True)
class Table:
    """A table under test."""

    spark: SparkSession
    settings: SettingsDocument
    name: TableName

    @classmethod
    def create(
        cls, spark: SparkSession, settings: SettingsDocument, name: str, version: int, properties: str = ""
    ) -> Table:
        table = cls(spark, settings, TableName("lake", (NAMESPACE,), name))
        table.sql(
            f"CREATE TABLE {{t}} ({COLUMNS}) USING iceberg PARTITIONED BY (days(d)) TBLPROPERTIES "
            f"('format-version'='{version}', 'commit.manifest-merge.enabled'='false', "
            f"'commit.manifest.target-size-bytes'='12000'{properties})"
        )
        return table

    def sql(self, statement: str) -> list[Any]:
        rows: list[Any] = self.spark.sql(statement.format(t=self.name.sql)).collect()
        return rows

    def append(self, first: int, count: int = 60) -> None:
        frame = self.spark.range(first, first + count, 1, 1).selectExpr(*ROWS)
        writer = frame.writeTo(self.name.sql).option("distribution-mode", "none").option("fanout-enabled", "true")
        writer.append()

    def rows(self, where: str = "true", columns: str = "*") -> list[str]:
        return sorted(map(str, self.sql(f"SELECT {columns} FROM {{t}} WHERE {where}")))

    def java(self) -> Any:
        return load_java_table(self.spark, self.name)

    def snapshot_id(self) -> int:
        return int(self.java().currentSnapshot().snapshotId())

    def matching_files(self) -> dict[str, set[str]]:
        """Of each predicate the files that hold rows for it."""
        found = ", ".join(f"max(coalesce({text}, false)) AS p{number}" for number, text in enumerate(ALL_PREDICATES))
        rows = self.sql(f"SELECT _file, {found} FROM {{t}} GROUP BY _file")
        return {text: {row[0] for row in rows if row[number + 1]} for number, text in enumerate(ALL_PREDICATES)}

    def planned_files(self, texts: Iterable[str] = ALL_PREDICATES) -> dict[str, set[str]]:
        """Of each predicate the files that Iceberg plans to read."""
        planned = self.planned(self.expressions(texts))
        return {text: {task.file().location() for task in tasks} for text, tasks in planned.items()}

    def expressions(self, texts: Iterable[str]) -> dict[str, Any]:
        """The predicates as Iceberg's expressions."""
        jvm: Any = self.spark._jvm
        converter = jvm.org.apache.spark.sql.execution.datasources.SparkExpressionConverter
        session, name = self.spark._jsparkSession, self.name.sql
        resolved = {text: converter.collectResolvedSparkExpression(session, name, text) for text in texts}
        return {text: converter.convertToIcebergExpression(found) for text, found in resolved.items()}

    def planned(self, expressions: Mapping[str, Any]) -> dict[str, Any]:
        """Of each expression the scan tasks, as Java lists."""
        jvm: Any = self.spark._jvm
        java, new_list = self.java(), jvm.org.apache.iceberg.relocated.com.google.common.collect.Lists.newArrayList
        return {text: new_list(java.newScan().filter(item).planFiles()) for text, item in expressions.items()}

    def run(self) -> RunFolder:
        return RunFolder(self.settings.home, "table_maintenance", f"manual__{uuid4()}")

    def act(self, request: MaintenanceRequest, run: RunFolder | None = None) -> dict[str, Any]:
        run = run or self.run()
        measure(self.settings, run, [self.name], spark=self.spark)
        proposed = propose(self.settings, run, self.name, request)
        assert proposed.status == "ok", proposed.reason
        envelope = act(self.settings, run, self.name, request, self.spark)
        data: dict[str, Any] = run.require_result("action", self.name).data
        assert envelope.status == "ok", envelope.reason
        return data | {"reason": envelope.reason, "run": run}
