"""What Iceberg accepts silently and then ignores: each kind on a real table, and as it is found before it is set."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from planning_health.catalogs import load_pyiceberg_catalog
from planning_health.errors import InputError
from planning_health.identifiers import TableName
from planning_health.maintenance.properties import PropertyPlan, inspect_metrics, plan_properties
from planning_health.maintenance.request import MaintenanceRequest
from planning_health.metadata import record_with_pyiceberg
from planning_health.settings import SettingsDocument

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DEFAULT = "write.metadata.metrics.default"
COLUMN = "write.metadata.metrics.column."
TEXT = "x" * 40


class Table:
    """A real table with the columns ``id``, ``s`` and the struct ``st`` of ``a`` and ``b``."""

    def __init__(self, spark: SparkSession, settings: SettingsDocument, name: str, columns: str) -> None:
        self.spark, self.settings = spark, settings
        self.name = TableName("lake", ("test_properties_of_iceberg",), name)
        spark.sql("CREATE NAMESPACE IF NOT EXISTS lake.test_properties_of_iceberg")
        spark.sql(f"CREATE TABLE {self.name.sql} ({columns}) USING iceberg")

    def set(self, **properties: str) -> None:
        pairs = ", ".join(f"'{key}' = '{value}'" for key, value in properties.items())
        self.spark.sql(f"ALTER TABLE {self.name.sql} SET TBLPROPERTIES ({pairs})")

    def insert(self, values: str) -> None:
        self.spark.sql(f"INSERT INTO {self.name.sql} {values}")

    def bounds(self) -> dict[str, Any]:
        """The upper bounds of the newest file, by column name; a column without bounds is missing."""
        metadata = record_with_pyiceberg(
            load_pyiceberg_catalog(self.settings, "lake"), self.name, queried=["id", "s", "st.a", "st.b"]
        )
        newest = metadata.data_files.to_pylist()[0]
        found = {
            metadata.info.schema.find_column_name(field_id): newest[f"upper_bound.{field_id}"]
            for field_id in metadata.info.recorded_field_ids
        }
        return {str(name): value for name, value in found.items() if value is not None}

    def plan(self, **request: Any) -> PropertyPlan:
        return plan_properties(self.info, MaintenanceRequest(actions=["set_properties"], **request))

    @property
    def info(self) -> Any:
        return record_with_pyiceberg(load_pyiceberg_catalog(self.settings, "lake"), self.name).info

    @property
    def notes(self) -> list[str]:
        return inspect_metrics(self.info.schema, self.info.properties)


@pytest.fixture
def table(spark: SparkSession, settings: SettingsDocument, request: pytest.FixtureRequest) -> Table:
    name = request.node.name.split("[")[0] + str(abs(hash(request.node.name)))
    return Table(spark, settings, name, "id BIGINT, s STRING, st STRUCT<a: STRING, b: INT>")


ROW = f"SELECT 1L, '{TEXT}', named_struct('a', '{TEXT}', 'b', 2)"


@pytest.mark.spark
@pytest.mark.parametrize("mode", ["off", "truncate(0)"])
def test_an_unknown_default_is_ignored_by_iceberg_and_refused_here(table: Table, mode: str) -> None:
    table.set(**{DEFAULT: mode})
    table.insert(ROW)
    assert len(table.bounds()["s"]) == 16
    assert table.notes == [f"{DEFAULT} = '{mode}' is not a mode: Iceberg ignores it and uses truncate(16)"]
    with pytest.raises(InputError, match="is not one of none, counts, full or truncate"):
        table.plan(metrics_default=mode)


@pytest.mark.spark
@pytest.mark.parametrize("mode", ["off", "truncate(0)"])
def test_an_unknown_mode_of_a_column_falls_back_to_the_default(table: Table, mode: str) -> None:
    table.set(**{DEFAULT: "full", COLUMN + "s": mode})
    table.insert(ROW)
    assert len(table.bounds()["s"]) == 40
    assert table.notes == [f"{COLUMN}s = '{mode}' is not a mode: Iceberg ignores it and uses full"]
    with pytest.raises(InputError, match="of column 's' is not one of"):
        table.plan(metrics_columns={"s": mode})


@pytest.mark.spark
def test_the_key_of_a_struct_has_no_effect(table: Table) -> None:
    table.set(**{DEFAULT: "full", COLUMN + "st": "none"})
    table.insert(ROW)
    assert {"st.a", "st.b"} <= table.bounds().keys()
    assert table.notes == [f"{COLUMN}st: 'st' is not a column with values of its own; the property has no effect"]
    with pytest.raises(InputError, match=r"has no values of its own; name its fields: st\.a, st\.b"):
        table.plan(metrics_columns={"st": "none"})


@pytest.mark.spark
@pytest.mark.parametrize("column", ["S", "gone"])
def test_iceberg_refuses_a_column_that_it_does_not_find_by_exact_case(table: Table, column: str) -> None:
    with pytest.raises(Exception, match=f"could not find column {column}"):
        table.set(**{COLUMN + column: "none"})
    if column == "S":
        (change,) = table.plan(metrics_columns={column: "none"}).changes
        assert change.key == COLUMN + "s"
        table.set(**{change.key: str(change.after)})
        table.insert(ROW)
        assert "s" not in table.bounds()
    else:
        with pytest.raises(InputError, match=r"column 'gone' does not exist\. Known: id, s, st\.a, st\.b"):
            table.plan(metrics_columns={column: "none"})


@pytest.mark.spark
def test_columns_beyond_the_hundredth_get_nothing_unless_a_default_is_set(
    spark: SparkSession, settings: SettingsDocument
) -> None:
    names = ["id", *(f"c{number}" for number in range(2, 103)), "s"]
    wide = Table(spark, settings, "wide", ", ".join(f"{name} BIGINT" for name in names))
    row = "SELECT " + ", ".join("1L" for _ in names)
    wide.insert(row)
    assert wide.bounds().keys() == {"id"}
    assert "103 columns, but without write.metadata.metrics.default only the first 100 get statistics" in wide.notes[0]
    wide.set(**{DEFAULT: "truncate(16)"})
    wide.insert(row)
    assert wide.bounds().keys() == {"id", "s"}
    assert wide.notes == []


@pytest.mark.spark
def test_what_a_dropped_column_leaves_behind_blocks_every_change_until_it_goes(table: Table) -> None:
    table.set(**{COLUMN + "st.a": "full"})
    table.spark.sql(f"ALTER TABLE {table.name.sql} DROP COLUMN st")
    assert COLUMN + "st.a" in table.info.properties
    with pytest.raises(Exception, match=r"could not find column st\.a"):
        table.set(**{DEFAULT: "none"})
    assert table.notes == [f"{COLUMN}st.a: 'st.a' is no column of the table any more; the property has no effect"]
    with pytest.raises(InputError, match=r"st\.a is of a column that the table does not have, and Iceberg refuses any"):
        table.plan(metrics_default="none")
    plan = table.plan(metrics_default="none", metrics_columns={"st.a": ""})
    for statement in reversed(plan.commands(table.name)):  # the leftover first: Iceberg checks each statement by itself
        table.spark.sql(statement)
    assert DEFAULT in table.info.properties
    assert COLUMN + "st.a" not in table.info.properties
