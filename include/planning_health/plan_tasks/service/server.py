"""Runs the application in uvicorn: where it listens, and how it logs."""

from __future__ import annotations

import ipaddress
import sys
from typing import Any

import structlog
import uvicorn
from starlette.types import ASGIApp
from structlog.tracebacks import ExceptionDictTransformer

from planning_health.errors import InputError
from planning_health.plan_tasks.service.options import TOKEN_VARIABLE, ServiceOptions

_GRACE_SECONDS = 5
_KEEP_ALIVE_SECONDS = 75  # as long as common proxies and HTTP clients hold on to an idle connection


def check_address(host: str, options: ServiceOptions) -> None:
    """Refuses to be reachable from other machines without a bearer token.

    Raises:
        InputError: the host is no loopback address and no token is set.
    """
    if options.bearer is None and not _is_loopback(host):
        raise InputError(
            f"host {host!r} is reachable from other machines: set {TOKEN_VARIABLE}, or listen on 127.0.0.1"
        )


def json_log() -> Any:
    """A logger that writes one JSON object a line on standard error; tracebacks come without any values."""
    return structlog.wrap_logger(
        structlog.PrintLogger(sys.stderr),
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.ExceptionRenderer(ExceptionDictTransformer(show_locals=False)),
            structlog.processors.JSONRenderer(),
        ],
    )


def run(app: ASGIApp, host: str, port: int) -> None:
    """Serves until the process is told to end.

    Raises:
        SystemExit: the address cannot be bound.
    """
    uvicorn.run(
        app,
        host=host,
        port=port,
        access_log=False,
        log_level="warning",
        server_header=False,
        timeout_keep_alive=_KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=_GRACE_SECONDS,
    )


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
