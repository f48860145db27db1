"""What a person reads who asks for something that cannot be done: the field, the value, what was expected."""

from __future__ import annotations

import pytest
from pydantic import BaseModel, ValidationError

from planning_health.cli.maintain import _request
from planning_health.errors import InputError, first_problem
from planning_health.maintenance.request import MaintenanceRequest
from planning_health.stages.forms import maintenance_request

TOO_LARGE = 10**30


def test_a_manifest_size_that_iceberg_cannot_read_is_refused_with_the_value() -> None:
    message = f"target_manifest_bytes: .* less than or equal to 2147483647 .got {TOO_LARGE}"
    with pytest.raises(InputError, match=message):
        _request([], rewrite=True, target_manifest_bytes=TOO_LARGE, spec_id=None, sort_by=[], dry_run=True)
    fields = {"table": "lake.a.b", "actions": ["set_properties"], "target_manifest_bytes": TOO_LARGE}
    with pytest.raises(InputError, match=message):
        maintenance_request(fields)
    largest = MaintenanceRequest(actions=["set_properties"], target_manifest_bytes=2**31 - 1)
    assert largest.target_manifest_bytes == 2**31 - 1


def test_a_request_without_an_action_says_that_nothing_was_asked_for() -> None:
    with pytest.raises(InputError, match="nothing was asked for: --no-rewrite needs --set-metrics or --target-"):
        _request([], rewrite=False, target_manifest_bytes=None, spec_id=None, sort_by=[], dry_run=True)
    with pytest.raises(InputError, match=r"^nothing was asked for: expected 'set_properties', 'rewrite_manifests' or"):
        maintenance_request({"table": "lake.a.b", "actions": []})


class Nested(BaseModel):
    size: int
    client_secret: int = 0


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ({"size": "big"}, "size: Input should be a valid integer, unable to parse string as an integer (got 'big')"),
        ({}, "size: Field required"),
        ({"size": 1, "client_secret": "pa55"}, "client_secret: Input should be a valid integer, unable to parse"),
    ],
)
def test_the_first_problem_names_the_value_but_no_secret(document: dict[str, object], message: str) -> None:
    with pytest.raises(ValidationError) as raised:
        Nested.model_validate(document)
    shown = first_problem(raised.value)
    assert shown.startswith(message)
    assert "pa55" not in shown
