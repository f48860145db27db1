"""A plan in total order: its tasks, their deletes and their residuals, in responses of any size."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.planning.pictures import File, Manifest, picture, spec
from tests.planning.test_scan import DAYS, SCHEMA, deletes, equality, position, vector

from planning_health.plan_tasks.service.plan import Plan, build_plan
from planning_health.planning.expressions import ALWAYS_TRUE, Expression, Operation, predicate
from planning_health.planning.scan import simulate_scan

DELETES = {"a": ["eq", "pos a"], "k": ["dv", "eq"], "m": [], "z": ["eq"]}


def plan(filter_: Expression = ALWAYS_TRUE) -> Plan:
    """Files in another order than that of their paths, some with deletes."""
    manifests = [
        Manifest([File("z", (1,)), File("m", (2,), sequence=9), File("a", (1,), sequence=2)]),
        Manifest([File("k", (1,))]),
        deletes(
            vector("dv", "k", 5),
            equality("eq", (1,), 5),
            position("pos a", (1,), 5, referenced="a"),
            equality("of nobody", (7,), 5),
        ),
    ]
    metadata = picture(SCHEMA, [DAYS], manifests)
    return build_plan(metadata, simulate_scan(metadata, filter_), frozenset())


def response(found: Plan, start: int, end: int) -> dict[str, Any]:
    return json.loads(b"{" + found.tasks_json(slice(start, end)) + b"}")


@pytest.mark.parametrize("size", [1, 2, 3, 4])
def test_each_response_holds_the_deletes_of_its_own_tasks_alone(size: int) -> None:
    found, delivered = plan(), {}
    assert len(found) == 4
    for start in range(0, 4, size):
        answer = response(found, start, start + size)
        sent = [file["file-path"] for file in answer.get("delete-files", [])]
        for task in answer["file-scan-tasks"]:
            references = task.get("delete-file-references", [])
            delivered[task["data-file"]["file-path"]] = sorted(sent[reference] for reference in references)
        assert sorted(sent) == sorted({path for task in answer["file-scan-tasks"] for path in DELETES[path_of(task)]})
    assert list(delivered.items()) == list(DELETES.items()), "in the order of the paths"


def path_of(task: dict[str, Any]) -> str:
    path: str = task["data-file"]["file-path"]
    return path


def test_a_response_whose_tasks_have_no_deletes_names_none() -> None:
    answer = response(plan(), 2, 3)
    assert "delete-files" not in answer
    assert [path_of(task) for task in answer["file-scan-tasks"]] == ["m"]
    assert "delete-file-references" not in answer["file-scan-tasks"][0]


def test_each_task_carries_its_own_residual() -> None:
    hours = spec((4, "hour"))
    files = [File("z", (10,)), File("a", (11,)), File("m", (10,))]
    metadata = picture(SCHEMA, [hours], [Manifest(files)])
    scan = simulate_scan(metadata, predicate(Operation.LT, "ts", "1970-01-01T11:30:00"))
    tasks = response(build_plan(metadata, scan, frozenset()), 0, 3)["file-scan-tasks"]
    residuals = {path_of(task): task["residual-filter"] for task in tasks}
    assert residuals["z"] is residuals["m"] is True
    assert (residuals["a"]["type"], residuals["a"]["term"]) == ("lt", "ts")


def test_an_empty_plan_has_no_task() -> None:
    nothing = plan(predicate(Operation.EQ, "d", "1999-01-01"))
    assert (len(nothing), response(nothing, 0, 100)) == (0, {"file-scan-tasks": []})
