"""docs/field-problems.md names a test for each public report; what only the absence of code can hold is tested here."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[1]
DOCUMENT = ROOT / "docs" / "field-problems.md"
ROWS = [line for line in DOCUMENT.read_text().splitlines() if re.match(r"\| \d+ \|", line)]


@cache
def names_in(path: str) -> set[str]:
    tree = ast.parse((ROOT / path).read_text())
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}


def sources(*folders: str) -> list[Path]:
    return [path for folder in folders for path in (ROOT / folder).rglob("*.py")]


def test_all_36_problems_are_listed() -> None:
    assert [int(row.split("|")[1]) for row in ROWS] == list(range(1, 37))


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.split("|")[1].strip())
def test_each_problem_has_its_address_and_tests_that_exist(row: str) -> None:
    _, _, report, behaviour, tests, _ = row.split("|")
    assert "https://github.com/" in report
    named = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", tests)
    assert named or "not handled" in behaviour
    assert [f"{path}::{name}" for path, name in named if name not in names_in(path)] == []


def test_nothing_removes_files_or_snapshots() -> None:
    # https://github.com/apache/iceberg/issues/4194: expiring is a recommendation that a person runs, no more
    for path in sources("include", "dags", "plugins"):
        text = path.read_text()
        assert not re.search(r"remove_orphan_files|delete_orphan_files|deleteOrphanFiles|expireSnapshots", text), path
        if path.parts[-2:] != ("maintenance", "recommendations.py"):
            assert not re.search(r"CALL .*expire_snapshots|call\(.*expire_snapshots", text), path


def test_no_work_is_done_in_callbacks() -> None:
    # https://github.com/apache/airflow/issues/31212: a task's slow callback turns its retry into a failure
    found = [
        match
        for path in sources("dags", "plugins")
        for match in re.findall(r"(on_\w+_callback)\W+(\w+)", path.read_text())
    ]
    assert found == [("on_failure_callback", "notify_of_failure")], "the Dags' own, which tells; tasks have none"


def test_the_embedded_catalog_writes_ahead() -> None:
    # https://github.com/apache/iceberg/pull/18044: "database is locked" without it
    settings = yaml.safe_load((ROOT / "include/planning_health/demo/settings.yaml").read_text())
    assert settings["catalogs"]["lake"]["properties"]["jdbc.journal_mode"] == "WAL"
