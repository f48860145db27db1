"""Fixtures of the fault tests, and the check that docs/faults.md tells what happened."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.faults.lake import NAMESPACE, Table, kinds
from tests.faults.operations import Seam

from planning_health.maintenance import rewrite as rewrite_module

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from planning_health.settings import SettingsDocument

DOCUMENT = Path(__file__).parents[2] / "docs" / "faults.md"

Make = Callable[[str], Table]
Conclude = Callable[[Table, str], None]
Outcome = Callable[[str, str, str], None]


@pytest.fixture(scope="session", autouse=True)
def _namespace(spark: SparkSession) -> None:
    spark.sql(f"CREATE NAMESPACE lake.{NAMESPACE}")


@pytest.fixture
def make(spark: SparkSession, settings: SettingsDocument, monkeypatch: pytest.MonkeyPatch) -> Make:
    """Makes a table for an action."""
    monkeypatch.setattr(rewrite_module, "FIRST_WAIT_SECONDS", 0.01)
    monkeypatch.setattr(rewrite_module, "LONGEST_WAIT_SECONDS", 0.02)
    return lambda action: Table.create(spark, settings, action)


@pytest.fixture
def seam(spark: SparkSession) -> Iterator[Seam]:
    with pytest.MonkeyPatch.context() as patch:
        yield Seam(spark, patch)


@pytest.fixture
def outcome(request: pytest.FixtureRequest) -> Outcome:
    """Compares what happened with the scenario's row in docs/faults.md."""

    def compare(says: str, second: str, left: str) -> None:
        row = f"| `{request.node.nodeid.split('tests/faults/')[1]}` | {says} | {second} | {left} |"
        assert row in DOCUMENT.read_text().splitlines(), f"docs/faults.md should say: {row}"

    return compare


@pytest.fixture
def conclude(outcome: Outcome) -> Conclude:
    """Runs the table's run again and checks the table: what it reads, its files, and what lies beside them."""

    def check(table: Table, says: str) -> None:
        second = table.ends_well()
        left = kinds(table.check_files())
        assert "our manifests" not in left
        outcome(says, second, left)

    return check
