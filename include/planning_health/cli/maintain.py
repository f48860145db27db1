"""`planning-health maintain`: proposes maintenance of one table, and runs it only with `--apply`."""

from __future__ import annotations

from typing import Annotated, Any, Final

import typer
from pydantic import ValidationError

from planning_health.catalogs import require_spark_catalog
from planning_health.cli.app import app
from planning_health.cli.options import (
    AsJson,
    SettingsFile,
    TableArgument,
    metrics_modes,
    new_run_folder,
    optional_spark,
    table_name,
    told_by_the_command,
)
from planning_health.cli.output import console, print_json, print_markdown, print_table, say, working
from planning_health.cli.tables import refuse_bad_input
from planning_health.errors import InputError, WorkFailedError, first_problem
from planning_health.maintenance.request import MaintenanceRequest
from planning_health.reports.command_line import maintain_command, what_apply_needs
from planning_health.reports.effects import effect
from planning_health.reports.proposal_text import proposal_text
from planning_health.settings import load_settings, settings_to_name
from planning_health.stages.act import act
from planning_health.stages.measure import measure
from planning_health.stages.propose import propose
from planning_health.stages.run_record import start_run
from planning_health.stages.table_stage import MEASUREMENT
from planning_health.wording import quantity, short_unit, state_name

REWRITE_HELP: Final = (
    "Rewrite manifests that gain by it, with Iceberg's rewrite_manifests. A --trim merges and clusters what it "
    "trims, also with --no-rewrite."
)
TRIM_HELP: Final = (
    "Write the manifests of a spec again without the statistics that the metrics properties do not ask for, merged and "
    "clustered in the same commit."
)


@app.command("maintain", rich_help_panel="Repair")
def maintain(
    table: TableArgument,
    apply: Annotated[
        bool, typer.Option("--apply", help="Really change the table; without it nothing changes.")
    ] = False,
    rewrite: Annotated[bool, typer.Option("--rewrite/--no-rewrite", help=REWRITE_HELP)] = True,
    trim: Annotated[
        bool,
        typer.Option("--trim", help=TRIM_HELP),
    ] = False,
    set_metrics: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KEY=MODE", help="default=MODE or column.NAME=MODE; concerns new files, and old ones with --trim."
        ),
    ] = None,
    target_manifest_bytes: Annotated[int | None, typer.Option(help="Set the target size of manifests.")] = None,
    spec_id: Annotated[int | None, typer.Option(help="Rewrite the manifests of this partition spec only.")] = None,
    sort_by: Annotated[list[str] | None, typer.Option(help="Partition field to cluster by; repeat in order.")] = None,
    settings: SettingsFile = None,
    as_json: AsJson = False,
) -> None:
    """Shows what maintenance would change and its predicted effect; --apply runs it and verifies the result."""
    document = load_settings(settings)
    name = table_name(document, table)
    request = _request(
        set_metrics or [],
        rewrite=rewrite,
        trim=trim,
        target_manifest_bytes=target_manifest_bytes,
        spec_id=spec_id,
        sort_by=sort_by or [],
        dry_run=not apply,
    )
    if apply:
        require_spark_catalog(document, name.catalog)
    folder = new_run_folder(document)
    start_run(document, folder)
    with working(f"maintaining {name}"), optional_spark(document, apply) as session:
        measure(document, folder, [name], spark=session)
        measured = folder.require_result(MEASUREMENT, name)
        refuse_bad_input([measured])
        if measured.status != "ok":
            raise WorkFailedError(f"{name} cannot be measured: {measured.reason}")
        with told_by_the_command():
            proposed = propose(document, folder, name, request)
        if proposed.status != "ok":
            raise InputError(str(proposed.reason))
        proposal = folder.require_result("proposal", name)
        acted = act(document, folder, name, request, session) if session and proposed.headline["proposals"] else None
    result = folder.require_result(acted.kind, name) if acted else proposal
    if as_json:
        print_json(result.model_dump())
    else:
        print_markdown(proposal_text(proposal, settings_to_name(settings)))
        if acted:
            show_action(result.data)
        elif not apply:
            console.print("\nDry run: nothing was changed.")
            if proposed.headline["proposals"]:
                say(f"{what_apply_needs(document, name.catalog)}. Carry it out with:")
                say(maintain_command(str(name), request.model_dump(), settings_to_name(settings)))
        if acted and (result.data["snapshots"] or result.data["properties"]):
            say(f"undo it with: planning-health rollback {folder.run_id}")
    if acted and acted.status != "ok":
        raise WorkFailedError(str(acted.reason))


def _request(set_metrics: list[str], *, rewrite: bool, trim: bool = False, **values: Any) -> MaintenanceRequest:
    default, columns = metrics_modes("--set-metrics", set_metrics)
    sets_properties = bool(set_metrics) or values["target_manifest_bytes"] is not None
    actions = ["set_properties"] * sets_properties + ["rewrite_manifests"] * rewrite + ["trim_statistics"] * trim
    if not actions:
        raise InputError("nothing was asked for: --no-rewrite needs --set-metrics or --target-manifest-bytes or --trim")
    try:
        return MaintenanceRequest.model_validate(
            {"actions": actions, "metrics_default": default, "metrics_columns": columns, **values}
        )
    except ValidationError as error:
        raise InputError(first_problem(error)) from error


def show_action(action: dict[str, Any]) -> None:
    """How an action ended: its steps, and each number before it, as predicted, and after it."""
    say(f"\nstate: {state_name(action['state'])}")
    for step in action["steps"]:
        reason = f": {step['reason']}" if step.get("reason") else ""
        say(f"  {step['step']}: {step['status']}{reason}")
    rows = [
        (row.label, *(quantity(value, short_unit(row.unit)) for value in (row.before, row.predicted, row.after)))
        for row in effect(*(action.get(side) or {} for side in ("before", "predicted", "after")))
        if row.after is not None
    ]
    if rows:
        print_table(["number", "before", "predicted", "after"], rows, title="\nBefore and after")
