"""The pages as a web application. Who may look and who may start a run is decided by what the caller gives it."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Final, NoReturn

from fastapi import Depends, FastAPI, Form, HTTPException, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.params import Depends as Dependency
from fastapi.responses import HTMLResponse, RedirectResponse
from starlette.exceptions import HTTPException as StarletteHTTPException

from planning_health.errors import InputError, PlanningHealthError
from planning_health.pages.charts import CHARTS, charts, table_of
from planning_health.pages.choices import choices
from planning_health.pages.index import SORTS, Query, index, repaired_since
from planning_health.pages.links import DAGS, MAINTENANCE_DAG, Links
from planning_health.pages.maintenance_form import LABELS, MaintenanceForm, filled_in, labelled, proposal_of
from planning_health.pages.render import render, script, stylesheet
from planning_health.pages.store import Moment, Store, Trends
from planning_health.reports.model import Proposal, TableReport
from planning_health.stages.forms import maintenance_request
from planning_health.wording import visible

_HEADERS: Final = {
    "Content-Security-Policy": "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; "
    "form-action 'self'; frame-ancestors 'self'; base-uri 'none'",
    "Cache-Control": "private, no-store",
    "Referrer-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
}
_ASSET_HEADERS: Final = {"Cache-Control": "private, max-age=300", "X-Content-Type-Options": "nosniff"}

StartRun = Callable[[Request, dict[str, Any]], str]
"""Starts the maintenance Dag with these form values and returns the run's id."""


@dataclass(frozen=True)
class Access:
    """Who may do what: given by the server that mounts the pages.

    Attributes:
        look: dependencies of every route; they refuse who may not look.
        act: dependencies of the route that starts maintenance.
        may_act: a dependency that says whether the start is offered.
        asks: whether the settings let a run wait for a person's approval.
    """

    look: Sequence[Dependency]
    act: Sequence[Dependency]
    may_act: Callable[..., bool]
    asks: Callable[[], bool]


def create_app(store: Callable[[], Store], access: Access, start: StartRun) -> FastAPI:
    """The application; every route, the style sheet too, is behind ``access.look``."""
    app = FastAPI(
        title="Planning health",
        dependencies=list(access.look),
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
    )
    _add_errors(app)
    _add_lists(app, store)
    _add_runs(app, store)
    _add_tables(app, store, access, start)
    return app


def _add_errors(app: FastAPI) -> None:
    @app.exception_handler(StarletteHTTPException)
    def refused(request: Request, error: StarletteHTTPException) -> Response:
        return _error(request, error.status_code, str(error.detail), dict(error.headers or {}))

    @app.exception_handler(RequestValidationError)
    def misunderstood(request: Request, error: RequestValidationError) -> Response:
        first = error.errors()[0]
        return _error(request, 400, f"{first['loc'][-1]}: {first['msg']}", {})

    @app.exception_handler(PlanningHealthError)
    def failed(request: Request, error: PlanningHealthError) -> Response:
        return _error(request, 500, str(error), {})


def _error(request: Request, status: int, reason: str, headers: dict[str, str]) -> Response:
    content = render("error", _links(request), status=status, reason=reason, login=status == 401)
    return HTMLResponse(content, status, headers | _HEADERS)


def _add_lists(app: FastAPI, store: Callable[[], Store]) -> None:
    @app.get("/")
    def tables(request: Request, q: str = "", state: str = "", sort: str = "", page: int = 1) -> Response:
        trends = store().trends()
        found = index(trends, Query(q[:200], state, sort, page))
        return _page(request, "index", index=found, trends=trends, sorts=SORTS)

    @app.get("/reports")
    def reports(request: Request) -> Response:
        return _page(request, "reports", weeks=store().trends().weeks)

    @app.get("/reports/{name}")
    def report(request: Request, name: str) -> Response:
        weeks = store().trends().weeks
        folder = next((run.report for run in weeks if run.report == f"reports/{name}"), None)
        return _report(request, store(), folder)

    @app.get("/page.css")
    def style() -> Response:
        return Response(stylesheet(), media_type="text/css", headers=_ASSET_HEADERS)

    @app.get("/page.js")
    def code() -> Response:
        return Response(script(), media_type="text/javascript", headers=_ASSET_HEADERS)


def _add_runs(app: FastAPI, store: Callable[[], Store]) -> None:
    @app.get("/run")
    def run(request: Request, dag_id: str = "", run_id: str = "", map_index: int = -1) -> Response:
        trends = store().trends()
        found = trends.run(dag_id, run_id)
        is_ours = found is not None or dag_id in DAGS  # no address reaches the files of anything else
        names = store().tables_of_run(dag_id, run_id) if is_ours else []
        if 0 <= map_index < len(names) and names[map_index] in trends.tables:
            return RedirectResponse(_links(request).table(names[map_index]), 303, _HEADERS)
        return _page(
            request,
            "run",
            dag_id=dag_id,
            run_id=run_id,
            shown_dag=visible(dag_id),
            shown_id=visible(run_id),
            run=found,
            failure=store().failure(dag_id, run_id) if is_ours else "",
            proposed=store().proposed_by_run(dag_id, run_id) if dag_id == MAINTENANCE_DAG and not found else [],
            tables=[(name, visible(name)) for name in names if name in trends.tables],
        )

    @app.get("/run/report")
    def run_report(request: Request, dag_id: str = "", run_id: str = "") -> Response:
        found = store().trends().run(dag_id, run_id)
        return _report(request, store(), found.report if found else None)


def _add_tables(app: FastAPI, store: Callable[[], Store], access: Access, start: StartRun) -> None:
    asked = Depends(access.may_act)

    @app.get("/table")
    def table(request: Request, name: str = "", may_act: bool = asked) -> Response:
        moments, trends = _known(store(), name)
        actions = trends.actions.get(visible(name), ())
        return _page(
            request,
            "table_page",
            name=name,
            shown=visible(name),
            newest=moments[-1],
            repaired_at=repaired_since(moments[-1], actions),
            moments=moments,
            charts=charts(moments, actions),
            columns=CHARTS,
            numbers=list(table_of(moments)),
            actions=actions,
            table=store().table(name, trends),
            may_act=may_act,
        )

    @app.get("/table/maintain")
    def form(request: Request, name: str = "", proposal: str = "", may_act: bool = asked) -> Response:
        report, chosen = _proposed(store(), name, proposal)
        filled = filled_in(name, chosen.params if chosen else {}, proposal)
        return shown(request, filled, report, chosen, may_act=may_act)

    @app.post("/table/maintain", dependencies=[Depends(_same_origin), *access.act])
    def maintain(request: Request, filled: Annotated[MaintenanceForm, Form()]) -> Response:
        report, chosen = _proposed(store(), filled.name, filled.proposal)
        try:
            maintenance_request(filled.values)
        except InputError as error:
            return shown(request, filled, report, chosen, may_act=True, problem=str(error))
        return RedirectResponse(_links(request).run(MAINTENANCE_DAG, start(request, filled.values)), 303, _HEADERS)

    def shown(
        request: Request,
        filled: MaintenanceForm,
        report: TableReport,
        chosen: Proposal | None,
        *,
        may_act: bool,
        problem: str = "",
    ) -> Response:
        told, field = labelled(problem)
        values = {
            "form": filled,
            "table": report,
            "proposal": chosen,
            "choices": choices(store().health(filled.name, store().trends()), filled),
            "labels": LABELS,
            "conf": json.dumps(filled.values, indent=2, ensure_ascii=False),
            "may_act": may_act,
            "asks": access.asks(),
            "problem": told,
            "field": field,
        }
        return HTMLResponse(render("maintain", _links(request), **values), 400 if problem else 200, headers=_HEADERS)


def _same_origin(request: Request) -> None:
    """Refuses a form that another site sent: browsers say where a request comes from."""
    if request.headers.get("sec-fetch-site", "same-origin") != "same-origin":
        raise HTTPException(403, "the form was sent from another site")


def _known(store: Store, name: str) -> tuple[Sequence[Moment], Trends]:
    """A table's moments; only names that a run left are looked up, so that no address reaches other files."""
    trends = store.trends()
    if name not in trends.tables:
        _missing("no run of the last year has measured this table")
    return trends.tables[name], trends


def _proposed(store: Store, name: str, proposal: str) -> tuple[TableReport, Proposal | None]:
    """A table and the proposal that its form is filled in from; none was asked for where its id is empty."""
    _, trends = _known(store, name)
    report = store.table(name, trends)
    chosen = proposal_of(report, proposal) if report else None
    if report is None or (proposal and chosen is None):
        _missing("this proposal is not there any more: the table has been measured again")
    return report, chosen


def _missing(reason: str) -> NoReturn:
    raise HTTPException(404, reason)


def _report(request: Request, store: Store, folder: str | None) -> Response:
    found = store.report(folder) if folder else None
    if found is None:
        _missing("there is no such report")
    return _page(request, "served_report", report=found)


def _links(request: Request) -> Links:
    return Links(str(request.scope.get("root_path", "")))


def _page(request: Request, template: str, **values: Any) -> Response:
    return HTMLResponse(render(template, _links(request), **values), headers=_HEADERS)
