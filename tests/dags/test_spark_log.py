"""Spark's output in a task's log: what a person reads, and everything that tells of a fault."""

from __future__ import annotations

import pytest

from spark_log import readable

RESOLVING = [
    ":: loading settings :: url = jar:file:/spark/jars/ivy-2.5.3.jar!/org/apache/ivy/core/settings/ivysettings.xml\n",
    "Ivy Default Cache set to: /root/.ivy2.5.2/cache\n",
    "org.xerial#sqlite-jdbc added as a dependency\n",
    ":: resolution report :: resolve 783ms :: artifacts dl 75ms\n",
    "\t---------------------------------------------------------------------\n",
]
RESOLVED = "\t0 artifacts copied, 2 already retrieved (0kB/27ms)\n"
WORK = [
    "INFO planning_health.stages.measure: measured lake.sales.orders (1 of 14): ok\n",
    "WARN TaskSetManager: Lost task\n",
]


def test_of_resolving_packages_one_line_is_left() -> None:
    shown = list(readable([*RESOLVING, RESOLVED, *WORK]))
    assert shown == ["Spark's packages are resolved: 0 artifacts copied, 2 already retrieved (0kB/27ms)", *WORK]


@pytest.mark.parametrize(
    "end", [["\t\t:: problems summary ::\n", "\t\tmodule not found: a#b;1\n", "UNRESOLVED DEPENDENCIES\n"], []]
)
def test_a_resolution_that_fails_or_breaks_off_is_shown_whole(end: list[str]) -> None:
    assert list(readable([*RESOLVING, *end])) == [*RESOLVING, *end]


def test_known_noise_is_left_out() -> None:
    noise = [
        "WARNING: Using incubator modules: jdk.incubator.vector\n",
        "26/11/30 03:29:18 WARN Utils: Your hostname, vm, resolves to a loopback address: 127.0.0.1; using 192.0.2.2\n",
        "26/11/30 03:29:22 WARN NativeCodeLoader: Unable to load native-hadoop library for your platform...\n",
        "26/11/30 03:29:31 INFO SparkContext: OS info Linux, 6.18.44, amd64\n",
    ]
    version = "26/11/30 03:29:31 INFO SparkContext: Running Spark version 4.1.3\n"
    assert list(readable([*noise, version, *WORK])) == [version, *WORK]
