"""Trims while others commit, and failures in between: no commit, no file and no rubbish is lost or left."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.planning.java_tables import FileMaker, JavaTable
from tests.planning.shapes import SCHEMA, spec_of

from planning_health.errors import WorkFailedError
from planning_health.maintenance.rewrite import (
    CommitStateUnknownError,
    ConflictError,
    RewriteOutcome,
    RewriteTask,
    rewrite_manifests,
)
from planning_health.maintenance.trim import rewrite
from planning_health.maintenance.trim.metrics_config import trim_rule
from planning_health.maintenance.trim.prediction import predict_trim

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

NAMESPACE = "test_trim_conflicts"
ROUNDS = 20
PROPERTIES = {"write.metadata.metrics.default": "none", "write.metadata.metrics.column.ts": "full"}


@pytest.fixture(scope="module", autouse=True)
def _namespace(spark: SparkSession) -> None:
    spark.sql(f"CREATE NAMESPACE lake.{NAMESPACE}")


class Table:
    """A table of metadata only, to which files are appended with all their statistics."""

    def __init__(self, spark: SparkSession, name: str) -> None:
        settings = {"commit.manifest.min-count-to-merge": "2", "commit.retry.min-wait-ms": "5"}
        self.java = JavaTable(spark, f"lake.{NAMESPACE}.{name}", SCHEMA, spec_of((8, "day")), **settings)
        self.maker = FileMaker(self.java, 7)
        self.paths: set[str] = set()
        self.spark = spark

    def append(self, *, merge: bool) -> None:
        """One commit; a merging one replaces the manifests that are there."""
        java = JavaTable.load(self.spark, str(self.java.name)).java
        update = java.newAppend() if merge else java.newFastAppend()
        document = self.maker.data_file()
        update.appendFile(self.java.content_file(document)).commit()
        self.paths.add(document["file-path"])

    def trim(self, run_id: str, attempts: int = 30) -> RewriteOutcome:
        task = RewriteTask(self.java.name, 0, (), run_id)

        def commit(java_table: Any) -> None:
            measured = JavaTable.load(self.spark, str(self.java.name)).record()
            prediction = predict_trim(measured, 0, 1 << 20, (), trim_rule(measured, PROPERTIES))
            rewrite.trim_manifests(self.spark, java_table, prediction, task.summary())

        return rewrite_manifests(
            self.spark, task, commit, max_attempts=attempts, measure_again=lambda: None, sleep=lambda _: None
        )

    def live_paths(self) -> list[str]:
        self.java.refresh()
        return sorted(self.java.record().data_files["file_path"].to_pylist())

    def staged(self) -> set[str]:
        folder = str(self.java.java.location()).removeprefix("file:")
        return {path.name for path in (Path(folder) / "metadata").glob("trim-*.avro")}

    def committed(self) -> set[str]:
        self.java.refresh()
        io = self.java.java.io()
        snapshots = self.java.java.snapshots()
        return {Path(m.path()).name for snapshot in snapshots for m in snapshot.allManifests(io)}


def test_a_concurrent_appender_loses_nothing_and_nothing_is_left_over(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = Table(spark, "appended")
    for _ in range(4):
        table.append(merge=False)
    rng = random.Random(3)  # noqa: S311 - the same rounds each time
    original, lost = rewrite._commit, []

    def commit_beside_an_append(*arguments: Any) -> None:
        """Another writer commits while the new manifests lie there: in turns one that merges ours, and others."""
        if rng.random() < 0.7:
            merges = rng.random() < 0.6
            writer = threading.Thread(target=table.append, kwargs={"merge": merges})
            writer.start()
            if merges:
                writer.join()
            try:
                original(*arguments)
            except Exception:
                lost.append(merges)
                raise
            finally:
                writer.join()
        else:
            original(*arguments)

    monkeypatch.setattr(rewrite, "_commit", commit_beside_an_append)
    outcomes = [table.trim(f"round-{number}") for number in range(ROUNDS)]
    assert table.live_paths() == sorted(table.paths)
    assert len({outcome.snapshot_id for outcome in outcomes}) == ROUNDS
    assert sum(outcome.attempts for outcome in outcomes) == ROUNDS + len(lost)
    assert [len(outcome.conflicts) for outcome in outcomes] == [outcome.attempts - 1 for outcome in outcomes]
    assert len(lost) >= 3
    assert table.staged() <= table.committed()


class LostAnswerError(Exception):
    """Stands for py4j's error of a commit whose answer was lost."""

    def __init__(self, java: Any) -> None:
        super().__init__("lost")
        self.java_exception = java


def unknown_state(spark: SparkSession) -> LostAnswerError:
    jvm: Any = spark._jvm
    return LostAnswerError(
        jvm.org.apache.iceberg.exceptions.CommitStateUnknownException(jvm.java.lang.RuntimeException("timeout"))
    )


def test_files_of_a_commit_whose_state_is_unknown_are_left_where_they_are(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = Table(spark, "unknown")
    for _ in range(3):
        table.append(merge=False)

    def lose(*_: Any) -> None:
        raise unknown_state(spark)

    monkeypatch.setattr(rewrite, "_commit", lose)
    with pytest.raises(CommitStateUnknownError, match="do not remove orphan files"):
        table.trim("never-landed")
    assert len(table.staged()) == 1


def test_a_commit_that_landed_although_its_answer_was_lost_is_found(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = Table(spark, "landed")
    for _ in range(3):
        table.append(merge=False)
    original = rewrite._commit

    def land_and_lose(*arguments: Any) -> None:
        original(*arguments)
        raise unknown_state(spark)

    monkeypatch.setattr(rewrite, "_commit", land_and_lose)
    outcome = table.trim("landed")
    assert outcome.attempts == 1
    assert table.staged() <= table.committed()
    assert table.live_paths() == sorted(table.paths)


@pytest.mark.parametrize(
    ("damage", "failure", "message"),
    [
        (lambda path: path.write_bytes(path.read_bytes()[:3000]), WorkFailedError, "is not a readable Avro file"),
        (lambda path: path.unlink(), ConflictError, "a manifest is missing"),
    ],
)
def test_a_manifest_that_cannot_be_read_ends_the_work_and_leaves_nothing(
    spark: SparkSession, damage: Callable[[Path], Any], failure: type[Exception], message: str
) -> None:
    table = Table(spark, f"damaged_{failure.__name__}")
    for _ in range(3):
        table.append(merge=False)
    table.java.refresh()
    measured = table.java.record()
    prediction = predict_trim(measured, 0, 1 << 20, (), trim_rule(measured, PROPERTIES))
    path = Path(measured.manifests["path"][1].as_py().removeprefix("file:"))
    damage(path)
    with pytest.raises(failure, match=message):
        rewrite.trim_manifests(spark, table.java.java, prediction, RewriteTask(table.java.name, 0, (), "x").summary())
    assert table.staged() == set()
