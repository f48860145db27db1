"""What stands behind an error of py4j or PySpark."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any


def causes(error: BaseException) -> Iterator[Any]:
    """The Java exceptions behind an error of py4j or PySpark, outermost first."""
    java = getattr(error, "java_exception", None) or getattr(error, "_origin", None)
    seen = 0
    while java is not None and seen < 20:
        yield java
        java, seen = java.getCause(), seen + 1
