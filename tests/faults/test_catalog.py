"""The catalog's database: away before, at and after the commit, and slow. A lock keeps everybody out of SQLite."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

import pytest
from tests.faults.conftest import Conclude, Make
from tests.faults.operations import Commit, Seam

if TYPE_CHECKING:
    from planning_health.settings import SettingsDocument

pytestmark = [
    pytest.mark.spark,
    pytest.mark.parametrize("action", ["set_properties", "rewrite_manifests", "trim_statistics"]),
]

SLOW_SECONDS = 1.5
"""Below the three seconds for which SQLite's driver waits."""


@contextmanager
def locked(settings: SettingsDocument) -> Iterator[None]:
    """Meanwhile nobody can read or write the catalog."""
    connection = sqlite3.connect(f"{settings.home}/catalog.db", isolation_level=None, check_same_thread=False)
    try:
        connection.execute("BEGIN EXCLUSIVE")
        yield
        connection.execute("ROLLBACK")
    finally:
        connection.close()


def test_the_catalog_is_away_from_the_beginning(
    action: str, settings: SettingsDocument, make: Make, conclude: Conclude
) -> None:
    table = make(action)
    properties = dict(table.iceberg().properties)
    with locked(settings):
        says = table.act()
    assert says["state"] == "failed"
    assert "cannot be loaded" in says["reason"]
    table.check_rows()
    table.check_truth(says, properties)
    conclude(table, says["state"])


def test_the_catalog_goes_away_in_the_moment_of_the_commit(
    action: str, settings: SettingsDocument, make: Make, seam: Seam, conclude: Conclude
) -> None:
    table = make(action)
    properties = dict(table.iceberg().properties)

    def commit_in_vain(commit: Commit) -> None:
        with locked(settings):
            commit()

    seam.at(commit_in_vain)
    says = table.act()
    seam.heal()
    assert says["state"] == "failed"
    table.check_rows()
    table.check_truth(says, properties)
    conclude(table, says["state"])


def test_the_catalog_goes_away_right_after_the_commit(
    action: str, settings: SettingsDocument, make: Make, seam: Seam, conclude: Conclude
) -> None:
    table = make(action)
    with ExitStack() as away:

        def commit_and_lock(commit: Commit) -> None:
            commit()
            away.enter_context(locked(settings))

        seam.at(commit_and_lock)
        says = table.act()
    seam.heal()
    assert says["state"] == "failed"
    assert "run it again under the same id" in says["reason"]
    assert table.own_snapshots(table.iceberg()) or action == "set_properties"
    table.check_rows()
    snapshots = len(table.iceberg().snapshots())
    conclude(table, says["state"])
    assert len(table.iceberg().snapshots()) == snapshots


def test_the_catalog_is_slow(
    action: str, settings: SettingsDocument, make: Make, seam: Seam, conclude: Conclude
) -> None:
    table = make(action)

    def commit_slowly(commit: Commit) -> None:
        with ExitStack() as away:
            away.enter_context(locked(settings))
            timer = threading.Timer(SLOW_SECONDS, away.pop_all().close)
            timer.start()
            commit()
            timer.join()

    seam.at(commit_slowly)
    says = table.act()
    seam.heal()
    assert says["state"] == "done", says["reason"]
    table.check_rows()
    table.check_truth(says, {})
    conclude(table, says["state"])
