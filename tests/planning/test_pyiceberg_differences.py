"""The known places where PyIceberg 0.12 prunes otherwise than Iceberg Java; a changed release makes a test fail."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest
from pyiceberg.expressions import BooleanExpression, EqualTo, LessThan, NotEqualTo, NotStartsWith
from pyiceberg.expressions.visitors import _InclusiveMetricsEvaluator
from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
from pyiceberg.schema import Schema
from pyiceberg.types import DoubleType, NestedField, StringType, UUIDType
from tests.planning.pictures import File, Manifest, picture, spec

from planning_health.planning.expressions import Operation, predicate
from planning_health.planning.scan import simulate_scan

SCHEMA = Schema(NestedField(1, "s", StringType()), NestedField(2, "u", UUIDType()), NestedField(3, "x", DoubleType()))
LEAST, ZERO = UUID("80000000-0000-0000-0000-000000000000"), UUID(int=0)
BETWEEN = UUID("f0000000-0000-0000-0000-000000000000")  # by Java's signed halves


def prunings(
    column: str, bounds: tuple[Any, Any], nulls: dict[str, int], theirs: BooleanExpression, ours: tuple[Operation, Any]
) -> tuple[bool, bool]:
    """Whether the simulation and PyIceberg prune a file of ten rows with these statistics."""
    file = File("f", lower={column: bounds[0]}, upper={column: bounds[1]}, values={column: 10}, nulls=nulls)
    metadata = picture(SCHEMA, [spec()], [Manifest([file])])
    op, value = ours
    row = metadata.data_files.to_pylist()[0]
    field_id = SCHEMA.find_field(column).field_id
    data_file = DataFile.from_args(
        content=DataFileContent.DATA,
        file_path="f",
        file_format=FileFormat.PARQUET,
        record_count=10,
        file_size_in_bytes=1,
        column_sizes={},
        value_counts={field_id: 10},
        null_value_counts={field_id: nulls[column]} if nulls else {},
        nan_value_counts={},
        lower_bounds={field_id: row[f"lower_bound.{field_id}"]},
        upper_bounds={field_id: row[f"upper_bound.{field_id}"]},
    )
    simulated = simulate_scan(metadata, predicate(op, column, value)).paths() == []
    return simulated, not _InclusiveMetricsEvaluator(SCHEMA, theirs).eval(data_file)


@pytest.mark.parametrize(
    ("column", "bounds", "nulls", "theirs", "ours"),
    [
        ("s", ("abc1", "abc9"), {}, NotStartsWith("s", "abc"), (Operation.NOT_STARTS_WITH, "abc")),
        ("u", (LEAST, ZERO), {"u": 0}, EqualTo("u", BETWEEN), (Operation.EQ, BETWEEN)),
        ("x", (-0.0, -0.0), {"x": 0}, LessThan("x", 0.0), (Operation.LT, 0.0)),
    ],
    ids=["a missing null count", "UUIDs as unsigned bytes", "one zero"],
)
def test_pyiceberg_prunes_what_iceberg_keeps(
    column: str, bounds: tuple[Any, Any], nulls: dict[str, int], theirs: BooleanExpression, ours: tuple[Operation, Any]
) -> None:
    assert prunings(column, bounds, nulls, theirs, ours) == (False, True)


@pytest.mark.parametrize(
    ("column", "bounds", "theirs", "ours"),
    [
        ("s", ("abc", "abc"), NotEqualTo("s", "abc"), (Operation.NOT_EQ, "abc")),
        ("x", (-1.5, -0.0), EqualTo("x", 0.0), (Operation.EQ, 0.0)),
    ],
    ids=["a file of one value", "one zero"],
)
def test_pyiceberg_keeps_what_iceberg_prunes(
    column: str, bounds: tuple[Any, Any], theirs: BooleanExpression, ours: tuple[Operation, Any]
) -> None:
    assert prunings(column, bounds, {column: 0}, theirs, ours) == (True, False)
