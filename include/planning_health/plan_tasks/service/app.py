"""The planning service as a FastAPI application: a read-only Iceberg REST catalog with server-side planning.

Paths and bodies are those of the Iceberg REST specification. Everything that would write is answered with 406.
"""

from __future__ import annotations

import re
from typing import Annotated, Any, Final
from urllib.parse import unquote_plus

import structlog
from anyio import CapacityLimiter
from anyio.to_thread import run_sync
from fastapi import APIRouter, Depends, FastAPI, Request
from fastapi.responses import Response
from prometheus_client import CONTENT_TYPE_LATEST
from pydantic_core import to_json
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp

from planning_health.errors import InputError
from planning_health.plan_tasks.service import rest_errors
from planning_health.plan_tasks.service.gate import NOTES, Gate
from planning_health.plan_tasks.service.metrics import ServiceMetrics
from planning_health.plan_tasks.service.options import ServiceOptions
from planning_health.plan_tasks.service.planning_service import Answer, PlanningService
from planning_health.plan_tasks.service.responses import error_response, json_body
from planning_health.plan_tasks.service.scan_request import parse_json
from planning_health.plan_tasks.service.source import CatalogSource
from planning_health.settings import SettingsDocument

_SEPARATOR: Final = re.compile("%1F", re.IGNORECASE)
"""Between the levels of a namespace, as it stands in a path."""

_PLANNING_THREADS: Final = 40
"""Planning requests under way; those that wait for a plan leave the other routes' threads alone."""

_NAMESPACES: Final = "/v1/namespaces"
_NAMESPACE: Final = "/v1/namespaces/{namespace}"
_TABLES: Final = f"{_NAMESPACE}/tables"
_TABLE: Final = f"{_TABLES}/{{table}}"

ENDPOINTS: Final = tuple(
    f"{method} {path.replace('/v1/', '/v1/{prefix}/')}"
    for method, path in (
        ("GET", _NAMESPACES),
        ("GET", _NAMESPACE),
        ("HEAD", _NAMESPACE),
        ("GET", _TABLES),
        ("GET", _TABLE),
        ("HEAD", _TABLE),
        ("POST", f"{_TABLE}/plan"),
        ("GET", f"{_TABLE}/plan/{{plan-id}}"),
        ("DELETE", f"{_TABLE}/plan/{{plan-id}}"),
        ("POST", f"{_TABLE}/tasks"),
    )
)
"""What ``GET /v1/config`` advertises: clients do not ask for anything else."""


def _levels(namespace: str) -> tuple[str, ...]:
    return tuple(unquote_plus(level) for level in _SEPARATOR.split(namespace))


def _name(table: str) -> str:
    return unquote_plus(table)


Levels = Annotated[tuple[str, ...], Depends(_levels)]
Name = Annotated[str, Depends(_name)]


def create_app(settings: SettingsDocument, catalog: str, options: ServiceOptions, log: Any = None) -> ASGIApp:
    """The application for one catalog.

    Args:
        settings: define the catalog.
        catalog: its name; clients may give it as their ``warehouse``.
        options: batches, tokens, limits, and the bearer token.
        log: a structlog logger for the request lines.

    Raises:
        InputError: the catalog cannot be opened.
    """
    source = CatalogSource(settings, catalog)
    metrics = ServiceMetrics()
    app = FastAPI(openapi_url=None, docs_url=None, redoc_url=None, redirect_slashes=False)
    app.add_exception_handler(rest_errors.RestError, _on_rest_error)
    app.add_exception_handler(HTTPException, _on_http_error)
    app.add_exception_handler(Exception, _on_unexpected)
    app.include_router(_catalog_routes(source))
    app.include_router(_planning_routes(PlanningService(source, options, metrics), metrics))
    app.include_router(_refusals())
    app.add_api_route("/metrics", lambda: Response(metrics.exposition(), media_type=CONTENT_TYPE_LATEST))
    return Gate(app, options, metrics, log or structlog.get_logger("planning_health.serve"))


def _catalog_routes(source: CatalogSource) -> APIRouter:
    router = APIRouter()

    @router.get("/v1/config")
    def config(warehouse: str | None = None) -> Any:
        if warehouse not in (None, "", source.name):
            raise rest_errors.RestError(404, "NoSuchWarehouseException", f"this server serves {source.name!r} only")
        return {"defaults": source.store_properties, "overrides": {}, "endpoints": list(ENDPOINTS)}

    @router.get(_NAMESPACES)
    def namespaces(parent: str | None = None) -> Any:
        levels = tuple(parent.split("\x1f")) if parent else ()
        return {"namespaces": source.namespaces(levels), "next-page-token": None}

    @router.get(_NAMESPACE)
    def namespace(namespace: Levels) -> Any:
        return {"namespace": namespace, "properties": source.namespace_properties(namespace)}

    @router.head(_NAMESPACE)
    def namespace_exists(namespace: Levels) -> Response:
        source.namespace_properties(namespace)
        return Response(status_code=204)

    @router.get(_TABLES)
    def tables(namespace: Levels) -> Any:
        identifiers = [{"namespace": item[:-1], "name": item[-1]} for item in source.tables(namespace)]
        return {"identifiers": identifiers, "next-page-token": None}

    @router.get(_TABLE)
    def table(namespace: Levels, table: Name) -> Response:
        found = source.load(namespace, table)
        location = to_json(found.location)
        return json_body(
            b'{"metadata-location":' + location + b',"metadata":' + found.metadata_json() + b',"config":{}}'
        )

    @router.head(_TABLE)
    def table_exists(namespace: Levels, table: Name) -> Response:
        if not source.table_exists(namespace, table):
            raise rest_errors.no_such_table(f"table {table!r} does not exist")
        return Response(status_code=204)

    return router


def _planning_routes(service: PlanningService, metrics: ServiceMetrics) -> APIRouter:
    router = APIRouter()
    threads = CapacityLimiter(_PLANNING_THREADS)

    def respond(request: Request, answer: Answer) -> Response:
        request.scope[NOTES] |= answer.notes()
        metrics.tasks.inc(answer.tasks)
        return json_body(answer.body)

    @router.post(f"{_TABLE}/plan")
    async def plan(request: Request, namespace: Levels, table: Name) -> Response:
        body = _json(await request.body())
        return respond(request, await run_sync(service.plan, namespace, table, body, limiter=threads))

    @router.get(f"{_TABLE}/plan/{{plan_id}}")
    def planned(request: Request, namespace: Levels, table: Name, plan_id: str) -> Response:
        return respond(request, service.planned(namespace, table, plan_id))

    @router.delete(f"{_TABLE}/plan/{{plan_id}}")
    def cancel(namespace: Levels, table: Name, plan_id: str) -> Response:
        service.cancel(namespace, table, plan_id)
        return Response(status_code=204)

    @router.post(f"{_TABLE}/tasks")
    async def tasks(request: Request, namespace: Levels, table: Name) -> Response:
        body = _json(await request.body())
        plan_task = body.get("plan-task") if isinstance(body, dict) else None
        if not isinstance(plan_task, str) or not plan_task:
            raise rest_errors.bad_request("plan-task: expected the text of a plan task")
        return respond(request, await run_sync(service.redeem, namespace, table, plan_task, limiter=threads))

    return router


def _refusals() -> APIRouter:
    """Whatever else is below ``/v1`` would write, or is no part of planning."""
    router = APIRouter()

    @router.api_route("/v1/{rest:path}", methods=["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"])
    def refuse(request: Request, rest: str) -> Response:
        raise rest_errors.unsupported(
            f"{request.method} is not supported here: this catalog is read-only and serves tables and their planning"
        )

    return router


def _json(body: bytes) -> Any:
    try:
        return parse_json(body)
    except InputError as error:
        raise rest_errors.bad_request(str(error)) from error


async def _on_rest_error(_: Request, error: Exception) -> Response:
    assert isinstance(error, rest_errors.RestError)  # noqa: S101 - registered for this class
    return error_response(error)


async def _on_unexpected(_: Request, __: Exception) -> Response:
    """The gate logs the error when it is raised again; nothing of it reaches the client."""
    return error_response(rest_errors.unexpected())


async def _on_http_error(_: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)  # noqa: S101 - registered for this class
    kind = "UnsupportedOperationException" if error.status_code == 405 else "NotFoundException"
    return error_response(rest_errors.RestError(error.status_code, kind, str(error.detail)))
