"""What of spark-submit's output is worth reading in a task's log."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final

_NOISE: Final = re.compile(
    r"Using Spark's default log4j profile|resolves to a loopback address|Set SPARK_LOCAL_IP|incubator modules"
    r"|NativeCodeLoader: Unable to load|INFO SparkContext: (OS info|Java version)|Setting Spark log level"
)
_RESOLVING: Final = re.compile(r"^\s*:: loading settings ::")
_RESOLVED: Final = re.compile(r"^\s*\d+ artifacts copied")


def readable(lines: Iterable[str]) -> Iterator[str]:
    """The lines without known noise; of the resolving of packages one line, unless it fails: then all of it."""
    held: list[str] = []
    for line in lines:
        if held or _RESOLVING.search(line):
            held.append(line)
            if _RESOLVED.search(line):
                held = []
                yield f"Spark's packages are resolved: {line.strip()}"
            elif "problems summary" in line:
                yield from held
                held = []
        elif not _NOISE.search(line):
            yield line
    yield from held
