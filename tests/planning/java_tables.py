"""Tables made of metadata only: data and delete files with chosen statistics, committed through Iceberg Java."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any
from uuid import UUID

from pyiceberg.conversions import to_bytes
from pyiceberg.partitioning import PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import IdentityTransform, UnknownTransform, VoidTransform
from pyiceberg.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    IcebergType,
    IntegerType,
    LongType,
    NestedField,
    StringType,
    TimestampNanoType,
    TimestampType,
    TimestamptzNanoType,
    TimestamptzType,
    TimeType,
    UUIDType,
)

from planning_health.identifiers import TableName
from planning_health.metadata import PlanningMetadata, SnapshotChoice
from planning_health.metadata.record import record
from planning_health.metadata.record_spark import java_reader, load_java_table
from planning_health.metadata.store import parse_table_metadata
from planning_health.planning.literals import Kind, Literal, decimal_of, to_json_value
from planning_health.planning.transforms import result_type, transform_function

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DAY_MICROS = 86_400_000_000
_DATES = [-800, -366, -365, -31, -1, 0, 1, 18993, 19936, 19967, 20000]
_MICROS = [
    -DAY_MICROS * 400,
    -3_599_000_001,
    -1_000_001,
    -1,
    0,
    1,
    3_600_000_000,
    19936 * DAY_MICROS + 5,
    19967 * DAY_MICROS,
]

POOLS: dict[type, Sequence[Any]] = {
    BooleanType: [False, True],
    IntegerType: [-(2**31), -11, -10, -1, 0, 1, 5, 9, 10, 11, 2**31 - 1],
    LongType: [-(2**63), -(2**31) - 1, -10, -1, 0, 1, 5, 9, 10, 2**40, 2**63 - 1],
    FloatType: [-1.5, -0.0, 0.0, 0.5, 1.0, 2.0, 3.25],
    DoubleType: [-1.5, -0.0, 0.0, 0.5, 1.0, 2.0, 1e300],
    DateType: _DATES,
    TimeType: [0, 1, 3_600_000_000, DAY_MICROS - 1],
    TimestampType: _MICROS,
    TimestamptzType: _MICROS,
    TimestampNanoType: [value * 1000 + 7 for value in _MICROS],
    TimestamptzNanoType: [value * 1000 + 7 for value in _MICROS],
    StringType: ["", "a", "ab", "abc", "abcd", "abd", "b", "null", "zz", "é", "\ud7ff", "\ufffd", "😀", "😀b", "😁"],
    UUIDType: [UUID(int=value) for value in (0, 1, 5 << 64, 1 << 127, (1 << 127) + 1, (1 << 63), (1 << 128) - 1)],
    BinaryType: [b"", b"\x00", b"\x01\x02", b"\x01\x02\x03", b"\x7f", b"\x80", b"\xff\xff"],
}
KINDS: dict[type, Kind] = {
    BooleanType: Kind.BOOLEAN,
    IntegerType: Kind.INT,
    LongType: Kind.LONG,
    FloatType: Kind.FLOAT,
    DoubleType: Kind.DOUBLE,
    DateType: Kind.DATE,
    TimeType: Kind.TIME,
    TimestampType: Kind.TIMESTAMP,
    TimestamptzType: Kind.TIMESTAMPTZ,
    TimestampNanoType: Kind.TIMESTAMP_NS,
    TimestamptzNanoType: Kind.TIMESTAMPTZ_NS,
    StringType: Kind.STRING,
    UUIDType: Kind.UUID,
    BinaryType: Kind.BINARY,
    FixedType: Kind.FIXED,
    DecimalType: Kind.DECIMAL,
}


def pool(value_type: IcebergType) -> Sequence[Any]:
    """Values worth trying of a type."""
    if isinstance(value_type, FixedType):
        return [bytes([first] * len(value_type)) for first in (0, 1, 0x7F, 0x80, 0xFF)]
    if isinstance(value_type, DecimalType):
        unscaled = [-1234, -101, -100, -1, 0, 1, 99, 100, 10**8]
        if value_type.precision > 30:
            unscaled += [-(10**30), 10**30, 2**63]
        return [decimal_of(value, value_type.scale) for value in unscaled]
    return POOLS[type(value_type)]


def literal_of(value_type: IcebergType, value: Any) -> Literal:
    """A literal that already has a column's type."""
    return Literal(KINDS[type(value_type)], value)


class JavaTable:
    """One table, created and changed through Iceberg Java's core API."""

    def __init__(
        self,
        spark: SparkSession,
        name: str,
        schema: Schema,
        spec: PartitionSpec,
        *,
        version: int = 2,
        **properties: str,
    ) -> None:
        self._open(spark, name)
        iceberg = self._jvm.org.apache.iceberg
        java_schema = iceberg.SchemaParser.fromJson(schema.model_dump_json())
        java_spec = iceberg.PartitionSpecParser.fromJson(java_schema, spec.model_dump_json())
        settings = {"format-version": str(version), **properties}
        self.java: Any = self._catalog.createTable(self._identifier, java_schema, java_spec, None, self._map(settings))

    @classmethod
    def load(cls, spark: SparkSession, name: str) -> JavaTable:
        """A table that exists."""
        table = cls.__new__(cls)
        table._open(spark, name)
        table.refresh()
        return table

    def _open(self, spark: SparkSession, name: str) -> None:
        self.spark = spark
        self.name = TableName.parse(name)
        self._jvm: Any = spark._jvm
        self._files = 0
        iceberg = self._jvm.org.apache.iceberg
        self._catalog = iceberg.spark.Spark3Util.loadIcebergCatalog(spark._jsparkSession, self.name.catalog)  # type: ignore[attr-defined]
        self._identifier = iceberg.catalog.TableIdentifier.parse(".".join(self.name.identifier))
        feature = iceberg.shaded.com.fasterxml.jackson.core.JsonParser.Feature.ALLOW_NON_NUMERIC_NUMBERS
        mapper = iceberg.shaded.com.fasterxml.jackson.databind.ObjectMapper()
        self._mapper: Any = mapper.configure(feature, True)

    def _map(self, values: dict[str, str]) -> Any:
        result = self._jvm.java.util.HashMap()
        for key, value in values.items():
            result.put(key, value)
        return result

    def refresh(self) -> None:
        self.java = self._catalog.loadTable(self._identifier)
        self.__dict__.pop("schema", None)
        self.__dict__.pop("specs", None)

    def metadata_json(self) -> str:
        return str(self._jvm.org.apache.iceberg.TableMetadataParser.toJson(self.java.operations().current()))

    @cached_property
    def schema(self) -> Schema:
        return parse_table_metadata(self.metadata_json()).schema()

    @cached_property
    def specs(self) -> dict[int, PartitionSpec]:
        return {spec.spec_id: spec for spec in parse_table_metadata(self.metadata_json()).partition_specs}

    def path(self, suffix: str = "parquet") -> str:
        self._files += 1
        return f"{self.name.name}/data/f{self._files:05d}.{suffix}"

    def content_file(self, document: dict[str, Any]) -> Any:
        node = self._mapper.readTree(json.dumps(document))
        return self._jvm.org.apache.iceberg.ContentFileParser.fromJson(node, self.java.specs())

    def append(self, files: Iterable[dict[str, Any]]) -> None:
        """One commit, one manifest."""
        update = self.java.newFastAppend()
        for file in files:
            update.appendFile(self.content_file(file))
        update.commit()

    def row_delta(self, deletes: Iterable[dict[str, Any]], rows: Iterable[dict[str, Any]] = ()) -> None:
        update = self.java.newRowDelta()
        for file in rows:
            update.addRows(self.content_file(file))
        for file in deletes:
            update.addDeletes(self.content_file(file))
        update.commit()

    def delete(self, paths: Iterable[str]) -> None:
        """Remove data files: their entries become DELETED."""
        update = self.java.newDelete()
        for path in paths:
            update.deleteFile(path)
        update.commit()

    def record(self, choice: SnapshotChoice | None = None, queried: Iterable[str] | None = None) -> PlanningMetadata:
        """Record the planning metadata, of all columns unless some are named."""
        metadata = parse_table_metadata(self.metadata_json())
        names = [schema.find_column_name(i) or "" for schema in metadata.schemas for i in schema.field_ids]
        reader = java_reader(load_java_table(self.spark, self.name))
        return record(self.name, metadata, "", reader, queried=names if queried is None else queried, choice=choice)


class FileMaker:
    """Random data and delete files for one table."""

    def __init__(self, table: JavaTable, seed: int) -> None:
        self._table = table
        self.random = random.Random(seed)  # noqa: S311 - tests want the same files again

    def data_file(self, spec_id: int = 0) -> dict[str, Any]:
        rng = self.random
        document = self._file(spec_id, "data")
        if rng.random() < 0.5:
            offsets = sorted(rng.sample(range(4, 300_000_000), rng.randint(1, 4)))
            document["split-offsets"] = offsets if rng.random() < 0.9 else offsets[::-1]
        return document

    def _file(self, spec_id: int, content: str, columns: Iterable[int] | None = None) -> dict[str, Any]:
        rng = self.random
        spec = self._table.specs[spec_id]
        samples = {field.field_id: self._sample(field) for field in self._columns()}
        chosen = samples if columns is None else {i: v for i, v in samples.items() if i in set(columns)}
        return {
            "spec-id": spec_id,
            "content": content,
            "file-path": self._table.path(),
            "file-format": rng.choice(["parquet", "parquet", "parquet", "orc", "avro"]),
            "partition": [self._partition(spec, position, samples) for position in range(len(spec.fields))],
            "file-size-in-bytes": rng.choice([10, 5_000_000, 130_000_000, 300_000_000, 400_000_000]),
            **self._metrics(chosen),
        }

    def _columns(self) -> list[NestedField]:
        schema = self._table.schema
        fields = [schema.find_field(field_id) for field_id in sorted(schema.field_ids)]
        return [field for field in fields if field.field_type.is_primitive]

    def _sample(self, field: NestedField) -> list[Any]:
        rng = self.random
        values: list[Any] = rng.choices(pool(field.field_type), k=rng.choice([1, 1, 2, 3]))
        if isinstance(field.field_type, FloatType | DoubleType) and rng.random() < 0.3:
            values = [float("nan")] * len(values) if rng.random() < 0.4 else [*values, float("nan")]
        if not field.required and rng.random() < 0.4:
            values = [None] * len(values) if rng.random() < 0.5 else [*values, None]
        return values

    def _partition(self, spec: PartitionSpec, position: int, samples: dict[int, list[Any]]) -> Any:
        field = spec.fields[position]
        values = samples.get(field.source_id)
        if values is None or values[0] is None or isinstance(field.transform, VoidTransform | UnknownTransform):
            return None
        source = self._table.schema.find_type(field.source_id)
        value = values[0]
        if not isinstance(field.transform, IdentityTransform):
            value = transform_function(field.transform, source)(value)
        return to_json_value(literal_of(result_type(field.transform, source), value))

    def _metrics(self, samples: dict[int, list[Any]]) -> dict[str, Any]:
        rng = self.random
        metrics: dict[str, dict[int, Any]] = {
            name: {}
            for name in ("value-counts", "null-value-counts", "nan-value-counts", "lower-bounds", "upper-bounds")
        }
        for field_id, values in samples.items():
            self._column_metrics(metrics, field_id, values)
        document: dict[str, Any] = {
            name: {"keys": list(entries), "values": list(entries.values())}
            for name, entries in metrics.items()
            if rng.random() < 0.97
        }
        document["record-count"] = rng.choice([0, 3, 100, 100, 100])
        return document

    def _column_metrics(self, metrics: dict[str, dict[int, Any]], field_id: int, values: list[Any]) -> None:
        rng = self.random
        field_type = self._table.schema.find_type(field_id)
        present = [value for value in values if value is not None and value == value]
        keep = rng.choice([0.0, 0.7, 1.0, 1.0, 1.0])
        counts = {
            "value-counts": len(values),
            "null-value-counts": sum(value is None for value in values),
        }
        if isinstance(field_type, FloatType | DoubleType):
            counts["nan-value-counts"] = sum(value is not None and value != value for value in values)
        for name, count in counts.items():
            if rng.random() < keep:
                metrics[name][field_id] = count
        if present:
            low, high = ordered_bounds(field_type, present)
            if isinstance(field_type, FloatType | DoubleType) and rng.random() < 0.1:
                low = float("nan")
            for name, bound in (("lower-bounds", low), ("upper-bounds", high)):
                if rng.random() < keep:
                    metrics[name][field_id] = to_bytes(field_type, bound).hex().upper()

    def position_deletes(self, spec_id: int, data: dict[str, Any], *, one_path: bool) -> dict[str, Any]:
        document = self._file(spec_id, "position-deletes", columns=())
        document["partition"] = data["partition"]
        document["record-count"] = 3
        document["file-format"] = "parquet"
        if one_path:
            bound = {"keys": [2147483546], "values": [data["file-path"].encode().hex().upper()]}
            document["lower-bounds"] = document["upper-bounds"] = bound
        return document

    def deletion_vector(self, spec_id: int, data: dict[str, Any]) -> dict[str, Any]:
        document = self.position_deletes(spec_id, data, one_path=False)
        document |= {
            "file-format": "puffin",
            "referenced-data-file": data["file-path"],
            "content-offset": 4,
            "content-size-in-bytes": self.random.choice([40, 9_000_000]),
        }
        return document

    def equality_deletes(self, spec_id: int, equality_ids: list[int]) -> dict[str, Any]:
        document = self._file(spec_id, "equality-deletes", columns=equality_ids)
        return document | {"equality-ids": equality_ids, "record-count": 5, "file-format": "parquet"}


def ordered_bounds(field_type: IcebergType, values: list[Any]) -> tuple[Any, Any]:
    """The least and the greatest value in Iceberg's order."""
    import pyarrow as pa

    from planning_health.planning.comparable import comparable

    column = comparable(pa.array([to_bytes(field_type, value) for value in values], pa.binary()), field_type)
    ranks = [int(sum(column.lt(literal_of(field_type, value)))) for value in values]
    return values[ranks.index(min(ranks))], values[ranks.index(max(ranks))]
