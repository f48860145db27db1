"""What every request passes before it reaches a route: token, size, and afterwards one log line and the metrics."""

from __future__ import annotations

import hmac
import time
import uuid
from collections.abc import Mapping
from typing import Any, Final

import structlog
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from planning_health.plan_tasks.service import rest_errors
from planning_health.plan_tasks.service.metrics import ServiceMetrics
from planning_health.plan_tasks.service.options import ServiceOptions
from planning_health.plan_tasks.service.responses import error_response

NOTES: Final = "planning_health.notes"
"""Key of the request's scope under which a route leaves what the log line shall tell."""

_METHODS: Final = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"})
_BEARER: Final = b"bearer "
_MAX_PATH_BYTES: Final = 8 * 1024


class Gate:
    """ASGI middleware around the whole application.

    Paths stay percent-encoded until a route decodes its parts: names may hold slashes, and Java writes a space as
    ``+``. The log line holds no header, no body and no query string, so neither tokens nor filter values.

    Args:
        app: the application.
        options: the bearer token and the largest body.
        metrics: counts requests.
        log: writes one line a request.
    """

    def __init__(self, app: ASGIApp, options: ServiceOptions, metrics: ServiceMetrics, log: Any = None) -> None:
        self._app, self._options, self._metrics = app, options, metrics
        self._log = log or structlog.get_logger("planning_health.serve")
        self._bearer = options.bearer.encode() if options.bearer is not None else None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers one request; other ASGI events pass through."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started = time.perf_counter()
        sent = _Sent(send)
        notes: dict[str, Any] = {}
        scope[NOTES] = notes
        scope["path"] = scope.get("raw_path", scope["path"].encode()).decode("latin-1").partition("?")[0]
        try:
            refusal = self._refusal(scope)
            if refusal is not None:
                await error_response(refusal)(scope, receive, sent)
            else:
                await self._app(scope, _limited(receive, self._options.body_bytes), sent)
        except Exception as error:  # the last resort: nothing of it reaches the client
            notes["error"] = type(error).__name__
            self._log.exception("unexpected error")
            if not sent.status:
                await error_response(rest_errors.unexpected())(scope, receive, sent)
        finally:
            self._finish(scope, sent, notes, time.perf_counter() - started)

    def _refusal(self, scope: Scope) -> rest_errors.RestError | None:
        headers = dict(scope["headers"])
        if self._bearer is not None and not self._authorized(headers):
            return rest_errors.not_authorized("expected a bearer token that this server was started with")
        if len(scope["path"]) > _MAX_PATH_BYTES:
            return rest_errors.RestError(414, "BadRequestException", "the path is too long")
        length = headers.get(b"content-length", b"0")
        if not length.isdigit():
            return rest_errors.bad_request("content-length is no number")
        return _too_large(self._options.body_bytes) if int(length) > self._options.body_bytes else None

    def _authorized(self, headers: Mapping[bytes, bytes]) -> bool:
        given = headers.get(b"authorization", b"")
        bearer = given[len(_BEARER) :] if given[: len(_BEARER)].lower() == _BEARER else b""
        return hmac.compare_digest(bearer, self._bearer or b"")

    def _finish(self, scope: Scope, sent: _Sent, notes: dict[str, Any], seconds: float) -> None:
        route = getattr(scope.get("route"), "path", "none")
        method = scope["method"] if scope["method"] in _METHODS else "other"
        self._metrics.requests.labels(method, route, str(sent.status)).inc()
        self._metrics.request_seconds.labels(route).observe(seconds)
        self._log.info(
            "request",
            id=uuid.uuid4().hex[:12],
            method=method,
            route=route,
            status=sent.status,
            ms=round(seconds * 1000, 2),
            bytes=sent.bytes,
            **notes,
        )


class _Sent:
    """Passes messages on, and remembers the status and the size."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self.status = 0
        self.bytes = 0

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
        elif message["type"] == "http.response.body":
            self.bytes += len(message.get("body", b""))
        await self._send(message)


def _limited(receive: Receive, limit: int) -> Receive:
    """A body without a length is counted while it comes in."""
    got = 0

    async def limited() -> Message:
        nonlocal got
        message = await receive()
        got += len(message.get("body", b""))
        if got > limit:
            raise _too_large(limit)
        return message

    return limited


def _too_large(limit: int) -> rest_errors.RestError:
    return rest_errors.RestError(413, "BadRequestException", f"the request body exceeds {limit} bytes")
