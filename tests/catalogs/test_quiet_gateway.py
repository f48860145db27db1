"""Spark's Java process starts without a word; why it did not start is one line."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark import SparkContext, java_gateway

from planning_health.catalogs.quiet_gateway import reason_in, start_quietly
from planning_health.errors import InputError

UNRESOLVED = """:: loading settings :: url = jar:file:/spark/jars/ivy-2.5.3.jar!/ivysettings.xml
:: resolving dependencies :: org.apache.spark#spark-submit-parent-1;1.0
		::::::::::::::::::::::::::::::::::::::::::::::
		:: org.xerial#sqlite-jdbc;3.50.3.99: not found
		::::::::::::::::::::::::::::::::::::::::::::::
Exception in thread "main" java.lang.Exception: [unresolved dependency: org.xerial#sqlite-jdbc;3.50.3.99: not found]
	at org.apache.spark.util.MavenUtils$.resolveMavenCoordinates(MavenUtils.scala:566)
"""


@pytest.mark.parametrize(
    ("output", "reason"),
    [
        (UNRESOLVED, "package org.xerial:sqlite-jdbc:3.50.3.99 of spark.packages was not found"),
        (
            'WARN x\nException in thread "main" java.lang.IllegalArgumentException: bad memory\n\tat a.b.C\n',
            "java.lang.IllegalArgumentException: bad memory",
        ),
        (
            "one\nError: Could not create the Java Virtual Machine.\n",
            "Error: Could not create the Java Virtual Machine.",
        ),
        ("", "Java said nothing"),
    ],
)
def test_the_reason_is_found_in_what_java_printed(output: str, reason: str) -> None:
    assert reason_in(output) == reason


def test_java_that_does_not_start_is_one_line_and_prints_nothing(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def launch(conf: Any, popen_kwargs: dict[str, Any]) -> None:
        assert conf.get("spark.driver.memory") == "1t"
        popen_kwargs["stderr"].write(b'Exception in thread "main" no room\n')
        raise RuntimeError("Java gateway process exited")

    monkeypatch.setattr(SparkContext, "_gateway", None)
    monkeypatch.setattr(SparkContext, "_jvm", None)
    monkeypatch.setattr(java_gateway, "launch_gateway", launch)
    with pytest.raises(InputError, match=r"^Spark did not start: no room$"):
        start_quietly({"spark.driver.memory": "1t"})
    assert capfd.readouterr() == ("", "")
