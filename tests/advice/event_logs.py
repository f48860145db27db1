"""Writes real Spark event logs in a test: Spark's own listener, attached to the running session for a while."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@contextmanager
def event_log(spark: SparkSession, folder: Path, **conf: str) -> Iterator[None]:
    """Logs what the session does meanwhile below a folder.

    Args:
        spark: the session.
        folder: where the log goes.
        conf: settings below ``spark.eventLog``, a dot written as two underscores: ``rolling__enabled="false"``.
    """
    folder.mkdir(parents=True, exist_ok=True)
    jvm: Any = spark._jvm
    context: Any = spark._jsc.sc()
    settings = context.conf().clone()
    for key, value in conf.items():
        settings.set(f"spark.eventLog.{key.replace('__', '.')}", value)
    listener = jvm.org.apache.spark.scheduler.EventLoggingListener(
        context.applicationId(), jvm.scala.Option.empty(), jvm.java.net.URI(folder.as_uri()), settings
    )
    listener.start()
    context.addSparkListener(listener)
    try:
        yield
    finally:
        context.listenerBus().waitUntilEmpty()
        context.removeSparkListener(listener)
        listener.stop()
