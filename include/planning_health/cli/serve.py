"""`planning-health serve`: a read-only Iceberg REST catalog that plans scans."""

from __future__ import annotations

import math
import os
from typing import Annotated

import typer

from planning_health.cli.app import app
from planning_health.cli.options import SettingsFile
from planning_health.cli.output import errors, say
from planning_health.errors import InputError
from planning_health.plan_tasks.cache_model import CACHE_ENTRIES, CACHE_EXPIRY_SECONDS
from planning_health.settings import SettingsDocument, load_settings


@app.command(rich_help_panel="Simulations")
def serve(
    catalog: Annotated[
        str | None, typer.Argument(metavar="CATALOG", help="A catalog of the settings; may be left out if it is alone.")
    ] = None,
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port to listen on.", min=1, max=65535)] = 8181,
    batch_size: Annotated[
        int | None, typer.Option(help="Tasks of one response, 0 for all; default: plan_tasks.batch_size.")
    ] = None,
    tokens: Annotated[str, typer.Option(help="What plan tasks name: offset or entry-ranges.")] = "offset",
    cache_mib: Annotated[int, typer.Option(help="Memory for cached plans, in MiB; 0 for no cache.")] = 256,
    cache_plans: Annotated[int, typer.Option(help="Most plans in the cache.")] = CACHE_ENTRIES,
    cache_minutes: Annotated[
        float, typer.Option(help="How long a plan stays after its last use.")
    ] = CACHE_EXPIRY_SECONDS / 60,
    settings: SettingsFile = None,
) -> None:
    """Serve a catalog read-only over Iceberg's REST protocol, with server-side scan planning.

    Requests must carry the bearer token in PLANNING_HEALTH_SERVE_TOKEN if that is set; it must be to listen on other
    addresses than loopback.
    """
    try:
        from planning_health.plan_tasks.service import TOKEN_VARIABLE, ServiceOptions, TokenKind, create_app
        from planning_health.plan_tasks.service.options import MIB
        from planning_health.plan_tasks.service.server import check_address, json_log, run
    except ModuleNotFoundError as error:
        raise InputError(f"serve needs {error.name}: pip install '.[serve]'") from error
    if tokens not in set(TokenKind):
        raise InputError(f"--tokens {tokens!r}: expected one of {', '.join(TokenKind)}")
    if not math.isfinite(cache_minutes):
        raise InputError(f"--cache-minutes {cache_minutes}: expected a finite number")
    loaded = load_settings(settings)
    options = ServiceOptions(
        batch_size=loaded.plan_tasks.batch_size if batch_size is None else batch_size,
        tokens=TokenKind(tokens),
        cache_bytes=cache_mib * MIB,
        cache_entries=cache_plans,
        cache_seconds=cache_minutes * 60,
        bearer=os.environ.get(TOKEN_VARIABLE),
    )
    check_address(host, options)
    name = catalog or _only_catalog(loaded)
    service = create_app(loaded, name, options, json_log())
    say(f"catalog {name} on http://{host}:{port}", to=errors)
    run(service, host, port)


def _only_catalog(settings: SettingsDocument) -> str:
    if len(settings.catalogs) > 1:
        raise InputError(f"CATALOG is missing: expected one of {', '.join(sorted(settings.catalogs))}")
    return next(iter(settings.catalogs))
