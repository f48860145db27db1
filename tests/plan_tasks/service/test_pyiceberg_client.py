"""PyIceberg reads through the service: filters on every type, as they travel and come back as residuals."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from contextlib import AbstractContextManager
from decimal import Decimal

import pyarrow as pa
import pytest
from pyiceberg.catalog import load_catalog
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.expressions import (
    AlwaysFalse,
    And,
    BooleanExpression,
    EqualTo,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNull,
    LessThan,
    Not,
    NotIn,
    NotStartsWith,
    Or,
    StartsWith,
)
from pyiceberg.table import Table
from tests.plan_tasks.service.conftest import EVENTS, ODD
from tests.plan_tasks.service.serving import Client

from planning_health.plan_tasks.service import TokenKind

Serve = Callable[..., AbstractContextManager[Client]]

DAYS = (1, 2, 3)
TYPED = pa.table(
    {
        "id": pa.array(DAYS, pa.int64()),
        "bin": pa.array([b"\x11", b"\x12", b"\xff"]),
        "fixed": pa.array([b"ab", b"cd", b"ef"], pa.binary(2)),
        "dec": pa.array([Decimal("1.50"), Decimal("2.50"), None], pa.decimal128(9, 2)),
        "ts": pa.array([dt.datetime(2026, 1, day) for day in DAYS], pa.timestamp("us")),
        "tz": pa.array([dt.datetime(2026, 1, day, tzinfo=dt.UTC) for day in DAYS], pa.timestamp("us", "UTC")),
        "day": pa.array([dt.date(2026, 1, day) for day in DAYS]),
        "real": pa.array([0.1, 0.2, 0.3], pa.float32()),
        "text": ["x", "y'\"z", None],
    }
)

FILTERS: list[tuple[BooleanExpression, list[int]]] = [
    (EqualTo("bin", b"\x11"), [1]),
    (In("bin", [b"\x11", b"\xff"]), [1, 3]),
    (EqualTo("fixed", b"cd"), [2]),
    (EqualTo("dec", Decimal("2.50")), [2]),
    (GreaterThan("ts", "2026-01-01T12:00:00"), [2, 3]),
    (GreaterThan("ts", dt.datetime(2026, 1, 2)), [3]),
    (GreaterThanOrEqual("tz", "2026-01-02T00:00:00+00:00"), [2, 3]),
    (EqualTo("day", dt.date(2026, 1, 2)), [2]),
    (LessThan("real", 0.15), [1]),
    (EqualTo("text", "y'\"z"), [2]),
    (IsNull("text"), [3]),
    (StartsWith("text", "y"), [2]),
    (And(NotStartsWith("text", "y"), LessThan("id", 3)), [1]),
    (Or(EqualTo("id", 1), Not(In("id", [1, 2]))), [1, 3]),
    (NotIn("id", [1, 2]), [3]),
    (AlwaysFalse(), []),
]


@pytest.fixture(scope="module")
def typed(writer: SqlCatalog) -> Table:
    table = writer.create_table(("db", "typed"), TYPED.schema)
    for row in range(len(TYPED)):
        table.append(TYPED.slice(row, 1))
    return table


@pytest.mark.parametrize("kind", list(TokenKind))
def test_filters_on_every_type_find_the_same_rows(serve_lake: Serve, typed: Table, kind: TokenKind) -> None:
    with serve_lake(batch_size=1, tokens=kind) as client:
        table = load_catalog("served", type="rest", uri=client.url, **{"scan-planning-mode": "server"}).load_table(
            ("db", "typed")
        )
        for wanted, ids in FILTERS:
            assert sorted(table.scan(row_filter=wanted).to_arrow()["id"].to_pylist()) == ids, wanted
        planned = client.lines(len(FILTERS), "/plan")
        assert [line["status"] for line in planned] == [200] * len(FILTERS)


def test_tables_with_odd_names_and_nested_namespaces_are_found_and_read(serve_lake: Serve, writer: SqlCatalog) -> None:
    with serve_lake(batch_size=4, bearer="s3cr3t") as client:
        catalog = load_catalog(
            "served",
            type="rest",
            uri=client.url,
            **{"scan-planning-mode": "server", "token": "s3cr3t"},
        )
        assert catalog.list_namespaces("outer") == [("outer", "in ner")]
        assert catalog.list_tables(("outer", "in ner")) == [ODD]
        assert catalog.table_exists(EVENTS)
        for name in (ODD, EVENTS):
            read, direct = catalog.load_table(name).scan().to_arrow(), writer.load_table(name).scan().to_arrow()
            assert read.sort_by("id").equals(direct.sort_by("id"))


def test_a_write_fails_before_it_reaches_the_service(serve_lake: Serve) -> None:
    with serve_lake() as client:
        catalog = load_catalog("served", type="rest", uri=client.url)
        with pytest.raises(NotImplementedError, match="Server does not support endpoint"):
            catalog.drop_table(EVENTS)
