"""The shapes of tables that the simulation is compared on with Iceberg Java."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import parse_transform
from pyiceberg.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    IntegerType,
    LongType,
    NestedField,
    StringType,
    StructType,
    TimestampNanoType,
    TimestampType,
    TimestamptzNanoType,
    TimestamptzType,
    TimeType,
    UUIDType,
)
from tests.planning.java_tables import FileMaker, JavaTable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SCHEMA = Schema(
    NestedField(1, "b", BooleanType()),
    NestedField(2, "i", IntegerType()),
    NestedField(3, "l", LongType()),
    NestedField(4, "f", FloatType()),
    NestedField(5, "d", DoubleType()),
    NestedField(6, "dt", DateType()),
    NestedField(7, "t", TimeType()),
    NestedField(8, "ts", TimestampType()),
    NestedField(9, "tz", TimestamptzType()),
    NestedField(10, "s", StringType()),
    NestedField(11, "u", UUIDType()),
    NestedField(12, "fx", FixedType(4)),
    NestedField(13, "bin", BinaryType()),
    NestedField(14, "dec", DecimalType(9, 2)),
    NestedField(15, "wide", DecimalType(38, 10)),
    NestedField(16, "r", IntegerType(), required=True),
    NestedField(
        17, "n", StructType(NestedField(18, "a", IntegerType(), required=True), NestedField(19, "c", StringType()))
    ),
)
NANO_SCHEMA = Schema(
    *SCHEMA.fields, NestedField(20, "ns", TimestampNanoType()), NestedField(21, "nz", TimestamptzNanoType())
)


def spec_of(*fields: tuple[int, str]) -> PartitionSpec:
    """A spec of (source id, transform) pairs; the fields are called p0, p1 and so on."""
    parts = [
        PartitionField(source, 1000 + index, parse_transform(transform), f"p{index}")
        for index, (source, transform) in enumerate(fields)
    ]
    return PartitionSpec(*parts)


SPECS: dict[str, tuple[int, PartitionSpec]] = {
    "unpartitioned": (2, spec_of()),
    "days": (2, spec_of((8, "day"))),
    "months_and_identity": (2, spec_of((6, "month"), (10, "identity"))),
    "buckets": (2, spec_of((3, "bucket[16]"), (10, "bucket[4]"), (11, "bucket[8]"), (15, "bucket[5]"))),
    "more_buckets": (
        2,
        spec_of((6, "bucket[3]"), (7, "bucket[3]"), (9, "bucket[3]"), (13, "bucket[3]"), (12, "bucket[3]")),
    ),
    "truncated": (
        2,
        spec_of(
            (10, "truncate[2]"), (2, "truncate[10]"), (14, "truncate[50]"), (13, "truncate[1]"), (3, "truncate[7]")
        ),
    ),
    "years_and_hours": (2, spec_of((9, "year"), (8, "hour"), (6, "year"), (9, "month"))),
    "identities": (2, spec_of((4, "identity"), (5, "identity"), (1, "identity"), (14, "identity"))),
    "odd_identities": (2, spec_of((11, "identity"), (7, "identity"), (13, "identity"), (15, "identity"))),
    "one_source_twice": (2, spec_of((8, "day"), (8, "hour"), (3, "bucket[4]"), (3, "truncate[10]"))),
    "nested_source": (2, spec_of((18, "identity"), (19, "truncate[1]"))),
    "first_version": (1, spec_of((10, "identity"), (8, "month"))),
}


def fill(table: JavaTable, seed: int, *, commits: int = 5, files: int = 6) -> None:
    """Some commits of random files, and a removal that leaves DELETED entries."""
    maker = FileMaker(table, seed)
    paths: list[str] = []
    for _ in range(commits):
        batch = [maker.data_file(max(table.specs)) for _ in range(maker.random.randint(1, files))]
        paths += [file["file-path"] for file in batch]
        table.append(batch)
    table.delete(maker.random.sample(paths, 2))


def plain(spark: SparkSession, namespace: str, name: str) -> JavaTable:
    """A table of one spec."""
    version, spec = SPECS[name]
    table = JavaTable(spark, f"{namespace}.{name}", SCHEMA, spec, version=version)
    fill(table, seed=len(name))
    return table


def nanoseconds(spark: SparkSession, namespace: str) -> JavaTable:
    table = JavaTable(
        spark, f"{namespace}.nanoseconds", NANO_SCHEMA, spec_of((20, "day"), (21, "hour"), (20, "bucket[4]")), version=3
    )
    fill(table, seed=20)
    return table


def evolve(table: JavaTable, change: Callable[[Any], Any]) -> None:
    change(table.java).commit()
    table.refresh()


def evolved(spark: SparkSession, namespace: str, version: int = 2) -> JavaTable:
    """Three specs one after the other."""
    table = JavaTable(
        spark, f"{namespace}.evolved_{version}", SCHEMA, spec_of((6, "day"), (10, "identity")), version=version
    )
    expressions = table._jvm.org.apache.iceberg.expressions.Expressions
    fill(table, seed=1, commits=2)
    evolve(table, lambda java: java.updateSpec().removeField("p0").addField(expressions.bucket("l", 8)))
    fill(table, seed=2, commits=2)
    evolve(table, lambda java: java.updateSpec().removeField("p1").removeField("l_bucket_8"))
    fill(table, seed=3, commits=2)
    return table


def merge_on_read(spark: SparkSession, namespace: str, *, partitioned: bool = True, version: int = 2) -> JavaTable:
    """Position deletes (or deletion vectors) and equality deletes between the data."""
    spec = spec_of((10, "identity"), (6, "month")) if partitioned else spec_of()
    name = f"merge_on_read_{version}_{'partitioned' if partitioned else 'global'}"
    table = JavaTable(spark, f"{namespace}.{name}", SCHEMA, spec, version=version)
    maker = FileMaker(table, seed=version * 10 + partitioned)
    data: list[dict[str, Any]] = []
    vectors: set[str] = set()
    for _ in range(6):
        batch = [maker.data_file() for _ in range(5)]
        table.append(batch)
        data += batch
        targets = maker.random.sample(data, 3)
        if version == 2:
            deletes = [maker.position_deletes(0, file, one_path=index == 0) for index, file in enumerate(targets)]
        else:
            fresh = [file for file in targets if file["file-path"] not in vectors]
            vectors |= {file["file-path"] for file in fresh}
            deletes = [maker.deletion_vector(0, file) for file in fresh]
        deletes += [maker.equality_deletes(0, ids) for ids in ([2], [10, 4], [16], [14, 15, 8])]
        for delete in deletes[-4:]:
            if maker.random.random() < 0.7:
                delete["partition"] = maker.random.choice(data)["partition"]
        table.row_delta(deletes)
    table.delete([data[0]["file-path"]])
    return table


def changed_columns(spark: SparkSession, namespace: str) -> JavaTable:
    """Promoted, renamed, dropped and added columns over old files."""
    table = JavaTable(
        spark, f"{namespace}.changed_columns", SCHEMA, spec_of((2, "identity"), (4, "identity")), version=3
    )
    types = table._jvm.org.apache.iceberg.types.Types
    lit = table._jvm.org.apache.iceberg.expressions.Expressions.lit
    fill(table, seed=5, commits=3)
    evolve(
        table,
        lambda java: (
            java.updateSchema()
            .updateColumn("i", types.LongType.get())
            .updateColumn("f", types.DoubleType.get())
            .updateColumn("dec", types.DecimalType.of(20, 2))
            .renameColumn("s", "text")
            .deleteColumn("u")
            .addColumn("added", types.StringType.get())
            .addColumn("with_default", types.StringType.get(), "a column that old files lack", lit("US"))
        ),
    )
    fill(table, seed=6, commits=3)
    return table


SHAPES: dict[str, Callable[[Any, str], JavaTable]] = {
    **{name: (lambda spark, namespace, name=name: plain(spark, namespace, name)) for name in SPECS},
    "nanoseconds": nanoseconds,
    "evolved": evolved,
    "evolved_first_version": lambda spark, namespace: evolved(spark, namespace, 1),
    "position_deletes": merge_on_read,
    "global_deletes": lambda spark, namespace: merge_on_read(spark, namespace, partitioned=False),
    "deletion_vectors": lambda spark, namespace: merge_on_read(spark, namespace, version=3),
    "changed_columns": changed_columns,
}
