"""Whatever the filter, a file that holds a matching row is never skipped; checked against the rows themselves."""

from __future__ import annotations

import struct
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from pyiceberg.schema import Schema
from pyiceberg.types import DateType, DoubleType, IntegerType, NestedField, StringType
from tests.planning.pictures import File, Manifest, picture, spec
from tests.planning.random_predicates import PredicateMaker

from planning_health.planning.expressions import AlwaysTrue, And, Expression, Operation, Or, bind, rewrite_not
from planning_health.planning.scan import simulate_scan
from planning_health.planning.transforms import transform_function

SCHEMA = Schema(
    NestedField(1, "i", IntegerType()),
    NestedField(2, "s", StringType()),
    NestedField(3, "x", DoubleType()),
    NestedField(4, "d", DateType()),
)
SPECS = {
    "none": (),
    "identity": ((1, "identity"), (2, "identity")),
    "bucket": ((1, "bucket[3]"), (2, "bucket[2]")),
    "truncate": ((1, "truncate[5]"), (2, "truncate[1]")),
    "month": ((4, "month"),),
    "year": ((4, "year"),),
}
ROWS = st.fixed_dictionaries(
    {
        "i": st.none() | st.integers(-12, 12),
        "s": st.none() | st.text("ab\ud7ff😀", max_size=3),
        "x": st.none() | st.sampled_from([-1.5, -0.0, 0.0, 0.5, 2.0, float("nan")]),
        "d": st.none() | st.integers(-800, 800),
    }
)


def matches(expr: Expression, row: dict[str, Any]) -> bool:
    """Whether a row satisfies a filter in SQL's logic (NOT already at the leaves)."""
    match expr:
        case And(left, right):
            return matches(left, row) and matches(right, row)
        case Or(left, right):
            return matches(left, row) or matches(right, row)
    if isinstance(expr, AlwaysTrue) or not hasattr(expr, "op"):
        return isinstance(expr, AlwaysTrue)
    value = row[expr.ref.name]
    if expr.op in (Operation.IS_NULL, Operation.NOT_NULL):
        return (value is None) is (expr.op is Operation.IS_NULL)
    return value is not None and LEAVES[expr.op](value, [lit.value for lit in expr.literals])


def key(value: Any) -> Any:
    """Iceberg's order: -0.0 before 0.0, NaN last."""
    if isinstance(value, float):
        (bits,) = struct.unpack("<q", struct.pack("<d", value))
        return bits if bits >= 0 else bits ^ 0x7FFF_FFFF_FFFF_FFFF
    return value


LEAVES: dict[Operation, Any] = {
    Operation.IS_NAN: lambda v, _: v != v,
    Operation.NOT_NAN: lambda v, _: v == v,
    Operation.LT: lambda v, lits: key(v) < key(lits[0]),
    Operation.LT_EQ: lambda v, lits: key(v) <= key(lits[0]),
    # NaN is outside bounds: Iceberg finds it by IS NAN only
    Operation.GT: lambda v, lits: v == v and key(v) > key(lits[0]),
    Operation.GT_EQ: lambda v, lits: v == v and key(v) >= key(lits[0]),
    Operation.EQ: lambda v, lits: key(v) == key(lits[0]),
    Operation.NOT_EQ: lambda v, lits: key(v) != key(lits[0]),
    Operation.IN: lambda v, lits: key(v) in map(key, lits),
    Operation.NOT_IN: lambda v, lits: key(v) not in map(key, lits),
    Operation.STARTS_WITH: lambda v, lits: v.startswith(lits[0]),
    Operation.NOT_STARTS_WITH: lambda v, lits: not v.startswith(lits[0]),
}


def partition_of(row: dict[str, Any], fields: tuple[tuple[int, str], ...]) -> tuple[Any, ...]:
    values = []
    for source, transform in fields:
        value = row[SCHEMA.find_field(source).name]
        if value is not None and transform != "identity":
            parsed = spec((source, transform)).fields[0].transform
            value = transform_function(parsed, SCHEMA.find_type(source))(value)
        values.append(value)
    return tuple(values)


def file_of(number: int, partition: tuple[Any, ...], rows: list[dict[str, Any]]) -> File:
    lower, upper, nulls, nans = {}, {}, {}, {}
    for field in SCHEMA.fields:
        values = [row[field.name] for row in rows]
        nulls[field.name] = values.count(None)
        present = sorted((v for v in values if v is not None and v == v), key=key)
        if isinstance(field.field_type, DoubleType):
            nans[field.name] = sum(v is not None and v != v for v in values)
        if present:
            lower[field.name], upper[field.name] = present[0], present[-1]
    counts = dict.fromkeys(nulls, len(rows))
    return File(f"f{number}", partition, lower, upper, counts, nulls, nans, records=len(rows))


@pytest.mark.parametrize("name", SPECS)
@settings(max_examples=150, deadline=None)
@given(rows=st.lists(ROWS, min_size=1, max_size=25), seed=st.integers(0, 10**6), cut=st.integers(1, 4))
def test_no_matching_row_is_lost(name: str, rows: list[dict[str, Any]], seed: int, cut: int) -> None:
    groups: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for row in rows:
        groups.setdefault(partition_of(row, SPECS[name]), []).append(row)
    contents = list(groups.values())
    files = [file_of(number, partition, found) for number, (partition, found) in enumerate(groups.items())]
    manifests = [Manifest(files[start : start + cut]) for start in range(0, len(files), cut)]
    expr = PredicateMaker(SCHEMA, seed).expression()
    # Truncating next to the smallest int wraps around in Iceberg Java, which loses rows there; we plan as it does.
    assume(name != "truncate" or "-2147483648" not in str(expr))
    filter_ = rewrite_not(bind(expr, SCHEMA))
    wanted = {f"f{number}" for number, found in enumerate(contents) if any(matches(filter_, row) for row in found)}
    found = set(simulate_scan(picture(SCHEMA, [spec(*SPECS[name])], manifests), expr).paths())
    assert wanted <= found, f"filter {expr}"
