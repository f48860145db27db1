"""Field problems that need real tables: what others stumble over is recorded without Spark, and planned as by Iceberg.

Each test cites the public report; ``docs/field-problems.md`` lists them all.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyiceberg.partitioning import PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.types import LongType, NestedField, StringType, UUIDType
from tests.planning.java_tables import FileMaker, JavaTable
from tests.planning.oracle import JavaPlanner, simulated
from tests.planning.shapes import evolve, spec_of

from planning_health.catalogs import load_pyiceberg_catalog
from planning_health.errors import NotMeasurableError
from planning_health.identifiers import TableName
from planning_health.metadata import PlanningMetadata, SnapshotChoice, record_with_pyiceberg
from planning_health.planning.expressions import ALWAYS_TRUE, Expression, Operation, predicate
from planning_health.planning.report import plan_where
from planning_health.planning.scan import ScanPlanner

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from planning_health.settings import SettingsDocument

pytestmark = pytest.mark.spark

NAMESPACE = "lake.test_planning_cases"
SCHEMA = Schema(NestedField(1, "k", LongType()), NestedField(2, "s", StringType()), NestedField(3, "u", UUIDType()))

Record = Callable[[str], PlanningMetadata]


@pytest.fixture(scope="module", autouse=True)
def namespace(spark: SparkSession) -> None:
    spark.sql(f"CREATE NAMESPACE IF NOT EXISTS {NAMESPACE}")


@pytest.fixture(scope="module")
def record(settings: SettingsDocument) -> Record:
    """Record a table of this module without Spark, with all of its columns."""
    catalog = load_pyiceberg_catalog(settings, "lake")

    def recorded(name: str) -> PlanningMetadata:
        table = catalog.load_table(("test_planning_cases", name))
        columns = [schema.find_column_name(i) or "" for schema in table.metadata.schemas for i in schema.field_ids]
        return record_with_pyiceberg(catalog, TableName.parse(f"{NAMESPACE}.{name}"), queried=columns)

    return recorded


def table(spark: SparkSession, name: str, spec: PartitionSpec, *, version: int = 2, **properties: str) -> JavaTable:
    return JavaTable(spark, f"{NAMESPACE}.{name}", SCHEMA, spec, version=version, **properties)


def same_plan(metadata: PlanningMetadata, java: JavaTable, *filters: Expression) -> None:
    planner, oracle = ScanPlanner(metadata), JavaPlanner(java.spark, java.java)
    for filter_ in (ALWAYS_TRUE, *filters):
        assert simulated(planner.plan(filter_)) == oracle.plan(filter_), f"filter {filter_}"


def planned(spark: SparkSession, metadata: PlanningMetadata, where: str) -> int:
    """The number of files that both plan for a predicate in SQL."""
    scan = plan_where(ScanPlanner(metadata), where)
    java = JavaTable.load(spark, str(metadata.info.name))
    expected = JavaPlanner(spark, java.java).plan(scan.filter)
    assert simulated(scan) == expected
    return len(expected.files)


def test_equality_deletes_are_planned_where_pyiceberg_raises(
    spark: SparkSession, settings: SettingsDocument, record: Record
) -> None:
    # https://github.com/apache/iceberg-python/issues/3270
    java = table(spark, "equality_deletes", spec_of((2, "identity")))
    maker = FileMaker(java, seed=1)
    data = [maker.data_file() for _ in range(6)]
    java.append(data)
    java.row_delta([{**maker.equality_deletes(0, [1]), "partition": file["partition"]} for file in data[:2]])
    with pytest.raises(ValueError, match="equality deletes"):
        list(load_pyiceberg_catalog(settings, "lake").load_table(java.name.identifier).scan().plan_files())
    metadata = record("equality_deletes")
    same_plan(metadata, java, predicate(Operation.EQ, "k", 5))
    assert ScanPlanner(metadata).plan(ALWAYS_TRUE).report.equality_delete_files == 2


def test_the_same_key_in_two_partitions_is_deleted_in_one(spark: SparkSession, record: Record) -> None:
    # https://github.com/StarRocks/starrocks/issues/73901 and https://github.com/apache/iceberg-rust/pull/1758
    java = table(spark, "one_key_twice", spec_of((2, "identity")))
    maker = FileMaker(java, seed=2)

    def file(partition: str) -> dict[str, Any]:
        statistics = {"value-counts": {"keys": [1], "values": [1]}, "null-value-counts": {"keys": [1], "values": [0]}}
        plain = {key: value for key, value in maker.data_file().items() if not key.endswith(("counts", "bounds"))}
        return plain | statistics | {"partition": [partition], "record-count": 1}

    old = [file("a"), file("b")]
    java.append(old)
    same_commit = file("a")
    java.row_delta([{**maker.equality_deletes(0, [1]), "partition": ["a"]}], rows=[same_commit])
    metadata = record("one_key_twice")
    same_plan(metadata, java)
    scan = ScanPlanner(metadata).plan(ALWAYS_TRUE)
    attached = {path: len(deletes) for path, deletes in zip(scan.paths(), scan.deletes(), strict=True)}
    assert attached == {old[0]["file-path"]: 1, old[1]["file-path"]: 0, same_commit["file-path"]: 0}


def test_a_dropped_partition_source_is_recorded_and_planned(spark: SparkSession, record: Record) -> None:
    # https://github.com/apache/iceberg/issues/10234
    java = table(spark, "dropped_source", spec_of((2, "identity"), (1, "bucket[4]")))
    maker = FileMaker(java, seed=3)
    for _ in range(2):
        java.append([maker.data_file() for _ in range(3)])
    evolve(java, lambda it: it.updateSpec().removeField("p0"))
    evolve(java, lambda it: it.updateSchema().deleteColumn("s"))
    java.append([maker.data_file(max(java.specs)) for _ in range(2)])
    same_plan(record("dropped_source"), java, predicate(Operation.EQ, "k", 5))


def test_a_void_field_of_a_first_version_table_is_recorded_and_planned(spark: SparkSession, record: Record) -> None:
    # https://github.com/apache/iceberg/issues/3374
    java = table(spark, "void_field", spec_of((2, "bucket[2]"), (1, "truncate[10]")), version=1)
    maker = FileMaker(java, seed=4)
    java.append([maker.data_file() for _ in range(3)])
    evolve(java, lambda it: it.updateSpec().removeField("p0"))
    java.append([maker.data_file(max(java.specs)) for _ in range(2)])
    java.java.updateProperties().set("format-version", "2").commit()
    java.refresh()
    java.append([maker.data_file(max(java.specs))])
    same_plan(record("void_field"), java, predicate(Operation.EQ, "s", "ab"), predicate(Operation.GT, "k", 5))


def test_uuid_partitions_are_recorded_and_planned(spark: SparkSession, record: Record) -> None:
    # https://github.com/apache/iceberg/issues/13703
    java = table(spark, "uuid_partitions", spec_of((3, "identity")))
    maker = FileMaker(java, seed=5)
    for _ in range(2):
        java.append([maker.data_file() for _ in range(4)])
    same_plan(
        record("uuid_partitions"),
        java,
        predicate(Operation.EQ, "u", "00000000-0000-0000-0000-000000000001"),
        predicate(Operation.NOT_NULL, "u"),
    )


def test_delete_files_of_every_kind_are_recorded_where_pyiceberg_inspection_fails(
    spark: SparkSession, settings: SettingsDocument, record: Record
) -> None:
    # https://github.com/apache/iceberg-python/issues/1884; of the same table a filter `content != 2` lost deletion
    # vectors: https://github.com/apache/iceberg/issues/17345
    java = table(spark, "delete_kinds", spec_of(), version=3)
    maker = FileMaker(java, seed=6)
    data = [maker.data_file() for _ in range(3)]
    java.append(data)
    java.row_delta([maker.deletion_vector(0, data[0]), maker.deletion_vector(0, data[1])])
    java.row_delta([maker.equality_deletes(0, [1])])
    with pytest.raises(TypeError):
        load_pyiceberg_catalog(settings, "lake").load_table(java.name.identifier).inspect.entries()
    metadata = record("delete_kinds")
    same_plan(metadata, java)
    report = ScanPlanner(metadata).plan(ALWAYS_TRUE).report
    assert (report.dvs, report.equality_delete_files) == (2, 1)


def test_columns_beyond_the_first_hundred_skip_no_file(spark: SparkSession, record: Record) -> None:
    # https://github.com/apache/iceberg/issues/11253
    columns = ", ".join(f"c{number:03} BIGINT" for number in range(103))
    spark.sql(f"CREATE TABLE {NAMESPACE}.wide ({columns}) USING iceberg")
    for start in (0, 1000):
        values = ", ".join(f"id + {start}" for _ in range(103))
        spark.sql(f"INSERT INTO {NAMESPACE}.wide SELECT {values} FROM range(0, 5, 1, 1)")
    metadata = record("wide")
    assert planned(spark, metadata, "c099 > 500") == 1
    assert planned(spark, metadata, "c100 > 500") == 2


def test_columns_with_odd_names_keep_their_statistics(spark: SparkSession, record: Record) -> None:
    # https://github.com/apache/iceberg/issues/11950
    spark.sql(f"CREATE TABLE {NAMESPACE}.odd_names (`a-b c` BIGINT, `x.y` BIGINT) USING iceberg")
    for start in (0, 1000):
        spark.sql(f"INSERT INTO {NAMESPACE}.odd_names SELECT id + {start}, id + {start} FROM range(0, 5, 1, 1)")
    metadata = record("odd_names")
    assert planned(spark, metadata, "`a-b c` > 500") == 1
    assert planned(spark, metadata, "`x.y` > 500") == 1


def test_a_file_whose_numbers_are_nan_is_pruned_though_spark_calls_nan_the_largest(
    spark: SparkSession, record: Record
) -> None:
    # https://github.com/apache/iceberg/issues/9130: by Spark's order the row qualifies, and is not found
    spark.sql(f"CREATE TABLE {NAMESPACE}.nan (x DOUBLE) USING iceberg")
    for value in ("double('NaN')", "double('3')"):
        spark.sql(f"INSERT INTO {NAMESPACE}.nan SELECT {value}")
    metadata = record("nan")
    assert planned(spark, metadata, "x >= 2.0") == 1
    assert spark.sql(f"SELECT * FROM {NAMESPACE}.nan WHERE x >= 2.0").count() == 1
    assert spark.sql("SELECT double('NaN') >= 2.0").first()[0] is True  # type: ignore[index]


def test_negative_zero_is_smaller_than_zero_to_iceberg_though_equal_to_spark(
    spark: SparkSession, record: Record
) -> None:
    # https://github.com/apache/iceberg-rust/pull/2398
    spark.sql(f"CREATE TABLE {NAMESPACE}.zeros (x DOUBLE, p DOUBLE) USING iceberg PARTITIONED BY (p)")
    spark.sql(f"INSERT INTO {NAMESPACE}.zeros SELECT double('-0.0'), double('-0.0')")
    spark.sql(f"INSERT INTO {NAMESPACE}.zeros SELECT double('0.0'), double('0.0')")
    metadata = record("zeros")
    for where in ("x = 0", "p = 0", "x < 0", "p < 0", "x >= 0", "p >= 0"):
        files = planned(spark, metadata, where)
        assert files <= 2
    assert planned(spark, metadata, "x + 0 = 0") == 2  # nothing is pushed down


def test_a_default_of_an_added_column_is_found_in_old_files(spark: SparkSession, record: Record) -> None:
    # https://github.com/apache/iceberg/issues/16690
    java = table(spark, "added_default", spec_of(), version=3)
    maker = FileMaker(java, seed=7)
    java.append([maker.data_file()])
    types = java._jvm.org.apache.iceberg.types.Types
    literal = java._jvm.org.apache.iceberg.expressions.Expressions.lit("US")
    evolve(java, lambda it: it.updateSchema().addColumn("c", types.StringType.get(), "country", literal))
    metadata = record("added_default")
    for where in ("c = 'US'", "c IS NOT NULL", "c IN ('US', 'DE')", "c LIKE 'U%'"):
        assert planned(spark, metadata, where) == 1, where


def test_a_widened_column_is_decoded_by_the_length_of_its_bounds(spark: SparkSession, record: Record) -> None:
    # https://github.com/apache/iceberg-python/issues/3744
    name = f"{NAMESPACE}.widened"
    spark.sql(f"CREATE TABLE {name} (i INT, f FLOAT, d DECIMAL(5, 2)) USING iceberg PARTITIONED BY (truncate(10, i))")
    spark.sql(f"INSERT INTO {name} VALUES (5, 0.5, 1.25)")
    for column, wider in (("i", "BIGINT"), ("f", "DOUBLE"), ("d", "DECIMAL(20, 2)")):
        spark.sql(f"ALTER TABLE {name} ALTER COLUMN {column} TYPE {wider}")
    spark.sql(f"INSERT INTO {name} VALUES (5000000000, 1e300, 123456789012.25)")
    metadata = record("widened")
    for where, files in (("i < 6", 1), ("i > 6", 1), ("f <= 0.5", 1), ("f > 1e200", 1), ("d = 1.25", 1), ("i > -1", 2)):
        assert planned(spark, metadata, where) == files, where


def test_text_before_the_surrogates_is_recorded_and_planned(spark: SparkSession, record: Record) -> None:
    # https://github.com/apache/iceberg-python/pull/3880: rounding the upper bound up steps over the surrogates
    name = f"{NAMESPACE}.surrogates"
    spark.sql(f"CREATE TABLE {name} (s STRING) USING iceberg")
    text = "a" * 15 + "\ud7ff" + "zz"
    spark.sql(f"INSERT INTO {name} SELECT '{text}'")
    metadata = record("surrogates")
    bound = metadata.data_files["upper_bound.1"][0].as_py()
    assert bound == ("a" * 15 + "\ue000").encode()
    assert planned(spark, metadata, f"s = '{text}'") == 1
    assert planned(spark, metadata, "s > 'b'") == 0


@pytest.mark.parametrize("choice", [SnapshotChoice(ref="audit"), SnapshotChoice(ref="release")], ids=["branch", "tag"])
def test_branches_and_tags_are_resolved_to_their_snapshot(
    spark: SparkSession, settings: SettingsDocument, choice: SnapshotChoice
) -> None:
    # https://github.com/apache/iceberg/issues/9279: not every metadata table can be asked for a branch or a tag
    name = TableName.parse(f"{NAMESPACE}.refs_{choice.ref}")
    kind = "BRANCH" if choice.ref == "audit" else "TAG"
    spark.sql(f"CREATE TABLE {name.sql} (k BIGINT) USING iceberg")
    spark.sql(f"INSERT INTO {name.sql} VALUES (1)")
    spark.sql(f"ALTER TABLE {name.sql} CREATE {kind} `{choice.ref}`")
    spark.sql(f"INSERT INTO {name.sql} VALUES (2)")
    metadata = record_with_pyiceberg(load_pyiceberg_catalog(settings, "lake"), name, choice=choice)
    refs = spark.sql(f"SELECT snapshot_id FROM {name.sql}.refs WHERE name = '{choice.ref}'").collect()
    assert metadata.info.snapshot_id == refs[0]["snapshot_id"]
    assert metadata.data_files.num_rows == 1


def test_a_lost_manifest_is_a_reason_not_an_empty_table(spark: SparkSession, settings: SettingsDocument) -> None:
    # https://github.com/apache/iceberg/issues/12792: a manifest that is gone is not one without files
    name = TableName.parse(f"{NAMESPACE}.lost_manifest")
    spark.sql(f"CREATE TABLE {name.sql} (k BIGINT) USING iceberg")
    spark.sql(f"INSERT INTO {name.sql} VALUES (1)")
    path = spark.sql(f"SELECT path FROM {name.sql}.manifests").collect()[0]["path"]
    Path(path.removeprefix("file:")).unlink()
    with pytest.raises(NotMeasurableError, match="is missing"):
        record_with_pyiceberg(load_pyiceberg_catalog(settings, "lake"), name)
