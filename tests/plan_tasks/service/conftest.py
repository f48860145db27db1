"""A small lake that PyIceberg writes, so that these tests need no Java."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import BinaryType, DateType, FixedType, LongType, NestedField, StringType
from tests.plan_tasks.service.serving import Client, serving

from planning_health.plan_tasks.service import ServiceOptions, TokenKind
from planning_health.settings import SettingsDocument

SCHEMA = Schema(
    NestedField(1, "id", LongType(), required=False),
    NestedField(2, "kind", StringType(), required=False),
    NestedField(3, "day", DateType(), required=False),
    NestedField(4, "payload", BinaryType(), required=False),
    NestedField(5, "code", FixedType(2), required=False),
)
SPEC = PartitionSpec(PartitionField(2, 1000, IdentityTransform(), "kind"))
KINDS = ("a", "b", "c")
APPENDS = 7

EVENTS = ("db", "events")
OTHER = ("db", "other")
ODD = ("outer", "in ner", "T+a ble/1")


def rows(load: int) -> pa.Table:
    """Rows of one load: one of each kind, so one file of each kind."""
    ids = [load * 10 + number for number in range(len(KINDS))]
    return pa.table(
        {
            "id": pa.array(ids, pa.int64()),
            "kind": pa.array(KINDS),
            "day": pa.array([20_000 + load] * len(KINDS), pa.int32()).cast(pa.date32()),
            "payload": pa.array([bytes([0x10 + number]) for number in range(len(KINDS))], pa.binary()),
            "code": pa.array([bytes([load, number]) for number in range(len(KINDS))], pa.binary(2)),
        }
    )


def fill(table: Table, loads: int = APPENDS) -> Table:
    for load in range(loads):
        table.append(rows(load))
    return table


@pytest.fixture(scope="session")
def lake_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("served")


@pytest.fixture(scope="session")
def lake_settings(lake_home: Path) -> SettingsDocument:
    location = {"uri": "jdbc:sqlite:${home}/catalog.db", "warehouse": "${home}/warehouse"}
    return SettingsDocument.model_validate(
        {"home": str(lake_home), "catalogs": {"lake": {"properties": {"type": "jdbc", **location}}}}
    )


@pytest.fixture(scope="session")
def writer(lake_home: Path) -> SqlCatalog:
    """The catalog, writable."""
    (lake_home / "warehouse").mkdir()
    catalog = SqlCatalog("lake", uri=f"sqlite:///{lake_home}/catalog.db", warehouse=f"{lake_home}/warehouse")
    for namespace in (("db",), ("outer",), ("outer", "in ner")):
        catalog.create_namespace(namespace)
    for identifier in (EVENTS, OTHER, ODD):
        location = f"{lake_home}/warehouse/{'_'.join(identifier[:-1])}/{uuid.uuid4()}"
        fill(catalog.create_table(identifier, SCHEMA, partition_spec=SPEC, location=location))
    return catalog


@pytest.fixture(scope="session")
def serve_lake(lake_settings: SettingsDocument, writer: SqlCatalog) -> Callable[..., object]:
    """Starts a service in front of the lake: ``with serve_lake(batch_size=7) as client``."""
    return lambda **options: serving(lake_settings, ServiceOptions(**options))


@pytest.fixture
def fresh_table(writer: SqlCatalog) -> Table:
    """A table of one's own, with the same rows as ``EVENTS``."""
    return fill(writer.create_table(("db", f"t_{uuid.uuid4().hex}"), SCHEMA, partition_spec=SPEC))


@pytest.fixture(scope="module")
def client(lake_settings: SettingsDocument, writer: SqlCatalog) -> Iterator[Client]:
    """A service with offset tokens in batches of 4."""
    with serving(lake_settings, ServiceOptions(batch_size=4)) as running:
        yield running


@pytest.fixture(scope="module", params=list(TokenKind))
def any_client(lake_settings: SettingsDocument, writer: SqlCatalog, request: pytest.FixtureRequest) -> Iterator[Client]:
    """A service in batches of 4, with either kind of token."""
    with serving(lake_settings, ServiceOptions(batch_size=4, tokens=request.param)) as running:
        yield running
