"""A read-only Iceberg REST catalog with server-side planning, in front of any configured catalog.

Needs the extra ``serve``. ``planning-health serve`` runs it.
"""

from planning_health.plan_tasks.service.app import ENDPOINTS, create_app
from planning_health.plan_tasks.service.options import TOKEN_VARIABLE, ServiceOptions, TokenKind

__all__ = ["ENDPOINTS", "TOKEN_VARIABLE", "ServiceOptions", "TokenKind", "create_app"]
