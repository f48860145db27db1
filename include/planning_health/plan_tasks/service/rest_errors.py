"""Errors as the Iceberg REST specification writes them: a status code, and one JSON object with message, type, code.

The types are the names of Iceberg's Java exceptions, from which clients choose the exception they throw.
"""

from __future__ import annotations

from typing import Any


class RestError(Exception):
    """An answer other than 2xx.

    Args:
        status: the HTTP status code.
        kind: the error's type, an exception name of Iceberg.
        message: one line for the person at the client; never a filter's values, never a secret.
    """

    def __init__(self, status: int, kind: str, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.kind = kind
        self.message = message

    def body(self) -> dict[str, Any]:
        """The JSON document of the answer."""
        return {"error": error_model(self.status, self.kind, self.message)}


def error_model(status: int, kind: str, message: str) -> dict[str, Any]:
    """The specification's ``ErrorModel``."""
    return {"message": message, "type": kind, "code": status}


def bad_request(message: str) -> RestError:
    """The request cannot be understood."""
    return RestError(400, "BadRequestException", message)


def not_authorized(message: str) -> RestError:
    """The request carries no bearer token, or another one."""
    return RestError(401, "NotAuthorizedException", message)


def forbidden(message: str) -> RestError:
    """The catalog or the store refuses this server."""
    return RestError(403, "ForbiddenException", message)


def no_such_namespace(message: str) -> RestError:
    """The namespace does not exist."""
    return RestError(404, "NoSuchNamespaceException", message)


def no_such_table(message: str) -> RestError:
    """The table does not exist."""
    return RestError(404, "NoSuchTableException", message)


def no_such_plan_task(message: str) -> RestError:
    """The plan-task is none of this table's, or what it stands for is gone."""
    return RestError(404, "NoSuchPlanTaskException", message)


def no_such_plan_id(message: str) -> RestError:
    """The plan-id is not known to this process (any more)."""
    return RestError(404, "NoSuchPlanIdException", message)


def unexpected() -> RestError:
    """A fault of this server."""
    return RestError(500, "InternalServerError", "an unexpected error; the server's log names it")


def unsupported(message: str) -> RestError:
    """The server does not do this: above all, it writes nothing."""
    return RestError(406, "UnsupportedOperationException", message)
