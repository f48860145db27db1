"""Faults at the moment of the commit: Iceberg's own code runs, on table operations of which one call is ours."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import pytest
from py4j.java_gateway import JavaObject
from py4j.protocol import Py4JJavaError
from pyspark.java_gateway import ensure_callback_server_started

from planning_health.maintenance import action as action_module

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SEAMS: Final = ("apply_properties", "rewrite_with_iceberg", "trim_manifests")
"""The functions that commit, as the action calls them: each is handed the freshly loaded table."""

Commit = Callable[[], None]
OnCommit = Callable[[Commit], None]


class Operations:
    """Iceberg's ``TableOperations``, whose ``commit`` calls a function with the real one."""

    def __init__(self, real: Any, on_commit: OnCommit) -> None:
        self._real, self._on_commit = real, on_commit

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)

    def commit(self, base: Any, metadata: Any) -> None:
        self._on_commit(lambda: self._real.commit(base, metadata))

    class Java:
        implements: Final = ["org.apache.iceberg.TableOperations"]


def table_with(spark: SparkSession, java_table: Any, on_commit: OnCommit) -> Any:
    """The table, with these operations."""
    gateway = spark.sparkContext._gateway
    gateway.callback_server_parameters.propagate_java_exceptions = True
    ensure_callback_server_started(gateway)
    operations = Operations(java_table.operations(), on_commit)
    return gateway.jvm.org.apache.iceberg.BaseTable(operations, java_table.name())


def java_error(spark: SparkSession, name: str, message: str) -> Py4JJavaError:
    """An exception of Iceberg's, to raise where Java calls Python."""
    exceptions: Any = spark._jvm.org.apache.iceberg.exceptions
    if name == "CommitStateUnknownException":
        java = exceptions.CommitStateUnknownException(spark._jvm.java.lang.RuntimeException(message))
    elif name == "RuntimeException":
        java = spark._jvm.java.lang.RuntimeException(message)
    else:
        java = getattr(exceptions, name)(message, spark.sparkContext._gateway.new_array(spark._jvm.Object, 0))
    return Py4JJavaError("", java)


class Seam:
    """Where an action commits: what is to happen right before, at and right after it."""

    def __init__(self, spark: SparkSession, patch: pytest.MonkeyPatch) -> None:
        self.spark, self._patch = spark, patch

    def before(self, fault: Callable[[], None]) -> None:
        """Runs ``fault`` when the table has been measured and loaded, before any of the commit."""

        def fault_then(call: Callable[[], Any]) -> Any:
            fault()
            return call()

        self._wrap(fault_then, None)

    def after(self, fault: Callable[[], None]) -> None:
        """Runs ``fault`` when the commit has come back."""

        def call_then(call: Callable[[], Any]) -> Any:
            call()
            fault()

        self._wrap(call_then, None)

    def at(self, on_commit: OnCommit, *, times: int = 1) -> None:
        """Runs ``on_commit`` in place of the operations' commit, the first ``times`` times."""
        left = [times]

        def limited(commit: Commit) -> None:
            left[0] -= 1
            (on_commit if left[0] >= 0 else lambda real: real())(commit)

        self._wrap(lambda call: call(), limited)

    def heal(self) -> None:
        """Ends the faults."""
        self._patch.undo()

    def _wrap(self, around: Callable[[Callable[[], Any]], Any], on_commit: OnCommit | None) -> None:
        for name in SEAMS:
            self._patch.setattr(action_module, name, self._wrapped(getattr(action_module, name), around, on_commit))

    def _wrapped(self, original: Callable[..., Any], around: Any, on_commit: OnCommit | None) -> Callable[..., Any]:
        def call(*given: Any) -> Any:
            return around(lambda: original(*(self._faulty(value, on_commit) for value in given)))

        return call

    def _faulty(self, value: Any, on_commit: OnCommit | None) -> Any:
        if on_commit is None or not isinstance(value, JavaObject):
            return value
        return table_with(self.spark, value, on_commit)
