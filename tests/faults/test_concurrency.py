"""Others commit while an action is at work: between its measurement and its commit, and inside the commit."""

from __future__ import annotations

import pytest
from tests.faults.conftest import Conclude, Make
from tests.faults.operations import Commit, Seam
from tests.faults.writers import WRITERS

pytestmark = [
    pytest.mark.spark,
    pytest.mark.parametrize("action", ["set_properties", "rewrite_manifests", "trim_statistics"]),
    pytest.mark.parametrize("writer", WRITERS),
]


def test_another_commits_after_the_measurement(
    action: str, writer: str, make: Make, seam: Seam, conclude: Conclude
) -> None:
    table = make(action)
    written: list[str] = []

    def write() -> None:
        if not written:
            written.append(writer)
            WRITERS[writer](table)

    seam.before(write)
    says = table.act()
    seam.heal()
    assert written == [writer]
    assert says["state"] in {"done", "no_op"}, says["reason"]
    table.check_rows()
    table.check_truth(says, dict(table.iceberg().properties))
    conclude(table, says["state"])


def test_another_commits_in_the_moment_of_the_commit(
    action: str, writer: str, make: Make, seam: Seam, conclude: Conclude
) -> None:
    """The snapshot is made and written when the other's commit lands: Iceberg has to notice and to begin anew."""
    table = make(action)
    written: list[str] = []

    def write_first(commit: Commit) -> None:
        written.append(writer)
        WRITERS[writer](table)
        commit()

    seam.at(write_first)
    says = table.act()
    seam.heal()
    assert written == [writer]
    assert says["state"] in {"done", "no_op"}, says["reason"]
    table.check_rows()
    table.check_truth(says, dict(table.iceberg().properties))
    conclude(table, says["state"])
