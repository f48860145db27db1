"""Answers as HTTP responses."""

from __future__ import annotations

from starlette.responses import JSONResponse, Response

from planning_health.plan_tasks.service.rest_errors import RestError


def json_body(content: bytes) -> Response:
    """A body that is JSON already."""
    return Response(content, media_type="application/json")


def error_response(error: RestError) -> Response:
    """An error in the specification's format."""
    headers = {"WWW-Authenticate": "Bearer"} if error.status == 401 else None
    return JSONResponse(error.body(), error.status, headers)
