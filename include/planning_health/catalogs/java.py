"""Finds Java and checks that Spark can start on it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

from planning_health.errors import InputError

SUPPORTED_JAVA: Final = (17, 21)
INSTALL_HINT: Final = (
    "install Java 17 or 21, for example `apt-get install openjdk-17-jre-headless` or `brew install openjdk@17`, "
    "or set JAVA_HOME to one"
)


def require_java() -> int:
    """The major version of the Java that Spark will start.

    Raises:
        InputError: with an install hint, when Java is missing or neither 17 nor 21.
    """
    home = os.environ.get("JAVA_HOME")
    binary = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    if not binary or not Path(binary).exists():
        where = f"JAVA_HOME is {home!r}, which has no bin/java" if home else "no java on the PATH"
        raise InputError(f"Java was not found ({where}): {INSTALL_HINT}")
    output = subprocess.run([binary, "-version"], capture_output=True, text=True, check=False).stderr  # noqa: S603
    match = re.search(r'version "(?:1\.)?(\d+)', output)
    if match is None or int(match[1]) not in SUPPORTED_JAVA:
        shown = match[1] if match else "of unknown version"
        raise InputError(f"Java {shown} at {binary} is not supported by Spark 4.1: {INSTALL_HINT}")
    return int(match[1])


if __name__ == "__main__":
    try:
        require_java()
    except InputError as error:
        sys.exit(f"error: {error}")
