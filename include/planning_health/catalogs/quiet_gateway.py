"""Starts Spark's Java process with its output kept aside: a terminal shows no progress of package resolution."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Mapping
from typing import Final

from planning_health.errors import InputError
from planning_health.redaction import first_line

_UNRESOLVED: Final = re.compile(r"unresolved dependency: (?P<what>[^;\]]+;[^:\]]+)")
_EXCEPTION: Final = re.compile(r'Exception in thread "[^"]*" (?P<what>.+)')


def start_quietly(conf: Mapping[str, str]) -> None:
    """Starts the Java process that this process's Spark sessions will use, unless one runs already.

    Args:
        conf: Spark's configuration, also what must be known before Java starts.

    Raises:
        InputError: when it does not start, with the reason that it told.
    """
    from pyspark import SparkConf, SparkContext
    from pyspark.java_gateway import launch_gateway

    if SparkContext._gateway is not None:
        return
    with tempfile.TemporaryFile() as output:  # Java keeps it open
        try:
            gateway = launch_gateway(SparkConf().setAll(conf.items()), {"stdout": output, "stderr": output})
        except Exception as error:
            output.seek(0)
            raise InputError(f"Spark did not start: {reason_in(output.read().decode(errors='replace'))}") from error
    SparkContext._ensure_initialized(gateway=gateway)


def reason_in(output: str) -> str:
    """Why Java ended, from what it printed: a package that was not found, its exception, else its last line."""
    if missing := _UNRESOLVED.search(output):
        return f"package {missing['what'].replace('#', ':').replace(';', ':')} of spark.packages was not found"
    if exception := _EXCEPTION.search(output):
        return first_line(exception["what"])
    return first_line((output.strip().splitlines() or ["Java said nothing"])[-1])
