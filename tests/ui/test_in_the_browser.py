"""From the page of a table to its repair, as a person does it in Airflow's UI."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Literal

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import FrameLocator, Page, expect

from planning_health.pages.links import maintain_path, run_path, table_path

from .conftest import COMMITS, EVENTS, RUN_SECONDS, Airflow, log_in

if TYPE_CHECKING:
    from playwright.sync_api import BrowserContext

pytestmark = [pytest.mark.airflow, pytest.mark.spark, pytest.mark.timeout(1800)]

PAGE = "/plugin/planning-health"


def frame(page: Page) -> FrameLocator:
    """The "Planning health" page inside Airflow's."""
    return page.frame_locator("iframe[title='Planning']")


def start_the_proposed_repair(page: Page, airflow: Airflow) -> str:
    """From the list of tables to the run that waits for a person; the address of the run's page."""
    page.goto(airflow.url + PAGE)
    frame(page).get_by_role("link", name=str(EVENTS)).click()
    expect(page).to_have_url(re.compile(f"{PAGE}/planning-health/table"))
    expect(frame(page).get_by_role("img", name=f"{COMMITS} of {COMMITS} manifests cover")).to_be_visible()

    frame(page).get_by_role("link", name="Start maintenance with these values").click()
    expect(frame(page).get_by_role("checkbox", name="Rewrite manifests")).to_be_checked()
    expect(frame(page).get_by_role("radio", name="Dry run")).to_be_checked()
    frame(page).get_by_role("radio", name="Change the table").check()
    expect(frame(page).get_by_role("radio", name="Ask a person")).to_be_checked()
    frame(page).get_by_role("button", name="Start the run").click()
    expect(frame(page).get_by_text("This run has left no report yet")).to_be_visible()

    expect(frame(page).get_by_text("Rewrite")).to_be_visible(timeout=RUN_SECONDS * 1000)
    airflow.await_decision(page.request, "table_maintenance")
    return page.url


def decide(page: Page, answer: str) -> None:
    """Answers what the run asks, from its own page."""
    frame(page).get_by_role("link", name="Approve or reject it").click()
    expect(page).to_have_url(re.compile("/dags/table_maintenance/runs/.*/tasks/approve/required_actions"))
    page.get_by_role("button", name=answer).click()


def open_report(page: Page, run: str) -> None:
    """The report of a run, once it is there."""
    page.goto(run)
    report = frame(page).get_by_role("link", name="The report of this run")
    report.wait_for(timeout=RUN_SECONDS * 1000)
    report.click()


def test_anonymous_access_is_refused(context: BrowserContext, airflow: Airflow) -> None:
    for path in ("/", f"/table?name={EVENTS}", "/reports", "/page.css"):
        assert context.request.get(f"{airflow.url}/planning-health{path}").status == 401
    page = context.new_page()
    page.goto(airflow.url + PAGE)
    expect(page).to_have_url(re.compile("/auth/login"))


def test_before_the_first_run_the_page_says_how_to_begin(context: BrowserContext, airflow: Airflow) -> None:
    page = log_in(context, airflow)
    page.get_by_role("link", name="Planning", exact=True).click()
    expect(frame(page).get_by_text("No run has left a report yet")).to_be_visible()


@pytest.mark.usefixtures("measured")
def test_a_rejected_proposal_leaves_the_table_as_it_was_and_the_report_says_so(
    context: BrowserContext, airflow: Airflow
) -> None:
    page = log_in(context, airflow)
    run = start_the_proposed_repair(page, airflow)
    decide(page, "Reject")
    open_report(page, run)
    expect(frame(page).get_by_text("the table was not changed: admin rejected the proposal").first).to_be_visible()


@pytest.mark.usefixtures("measured")
def test_a_proposal_that_nobody_answers_in_time_leaves_the_table_as_it_was_and_the_report_says_so(
    context: BrowserContext, airflow: Airflow
) -> None:
    page = log_in(context, airflow)
    run_id = airflow.start(context.request, "table_maintenance", table=str(EVENTS), dry_run=False)
    page.goto(f"{airflow.url}{PAGE}/planning-health{run_path('table_maintenance', run_id)}")
    frame(page).get_by_role("link", name="The report of this run").click()
    expect(frame(page).get_by_text("nobody approved the proposal within 2 minutes 30 seconds").first).to_be_visible()


@pytest.mark.usefixtures("measured")
def test_a_table_is_repaired_from_its_page_with_approval_and_the_report_changes(
    context: BrowserContext, airflow: Airflow
) -> None:
    page = log_in(context, airflow)
    run = start_the_proposed_repair(page, airflow)
    decide(page, "Approve")
    open_report(page, run)
    expect(frame(page).get_by_text("done and checked").first).to_be_visible()

    page.goto(f"{airflow.url}{PAGE}/planning-health{table_path(str(EVENTS))}")
    expect(frame(page).get_by_text("State, findings and pictures are from before the repair")).to_be_visible()

    airflow.start(context.request, "planning_health_weekly")
    page.reload()
    expect(frame(page).get_by_text(f"{COMMITS} of {COMMITS} manifests before, 1 of")).to_be_visible()
    expect(frame(page).get_by_text("State, findings and pictures are from before the repair")).to_have_count(0)
    frame(page).get_by_role("link", name="Reports").click()
    expect(frame(page).get_by_role("link", name="Report of")).to_have_count(2)
    frame(page).get_by_role("link", name="Report of").first.click()
    expect(frame(page).get_by_text("1 repair was made and checked").first).to_be_visible()


@pytest.mark.usefixtures("measured")
@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 400])
def test_every_page_is_usable_with_a_screen_reader_and_fits_the_window(
    context: BrowserContext, airflow: Airflow, theme: Literal["light", "dark"], width: int
) -> None:
    page = log_in(context, airflow)
    page.emulate_media(color_scheme=theme)
    page.set_viewport_size({"width": width, "height": 800})
    page.goto(f"{airflow.url}/planning-health/reports")
    report = page.get_by_role("link", name="Report of").first.get_attribute("href")
    parts = ("/", table_path(str(EVENTS)), maintain_path(str(EVENTS)), "/reports", "/run", "/nothing")
    faults = {}
    for path in (str(report), *(f"/planning-health{part}" for part in parts)):
        page.goto(f"{airflow.url}{path}")
        page.evaluate("document.querySelectorAll('details').forEach((part) => { part.open = true; })")
        found = Axe().run(page)
        faults[path] = found.generate_report() if found.violations_count else ""
        assert page.evaluate("document.documentElement.scrollWidth") <= width, path
    assert faults == dict.fromkeys(faults, "")


@pytest.mark.usefixtures("measured")
def test_a_run_is_started_with_the_keyboard_alone(context: BrowserContext, airflow: Airflow) -> None:
    page = log_in(context, airflow)
    page.goto(f"{airflow.url}/planning-health{maintain_path(str(EVENTS))}")
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to the content")).to_be_focused()
    page.keyboard.press("Enter")
    reached = []
    while "Start the run" not in reached:
        page.keyboard.press("Tab")
        focused = page.locator(":focus")
        assert focused.evaluate("(field) => field.matches(':focus-visible')")
        reached.append(focused.evaluate("(field) => field.labels?.[0]?.innerText || field.innerText"))
        assert len(reached) < 40, reached
    assert reached[0] == "Back to the table"
    for part in ("Rewrite manifests.", "Partition spec", "Target size of a manifest", "Dry run.", "Ask a person"):
        assert any(part in name for name in reached), part
    page.keyboard.press("Enter")
    expect(page.get_by_text("This run has left no report yet")).to_be_visible()


@pytest.mark.usefixtures("measured")
def test_the_page_takes_over_airflows_dark_mode_and_its_links_leave_the_frame(
    context: BrowserContext, airflow: Airflow
) -> None:
    page = log_in(context, airflow)
    page.evaluate("localStorage.setItem('theme', 'dark')")
    page.goto(airflow.url + PAGE)
    expect(frame(page).locator("html")).to_have_attribute("data-theme", "dark")
    frame(page).get_by_role("link", name="the run in Airflow").click()
    expect(page).to_have_url(re.compile("^[^?]*/dags/planning_health_weekly/runs/"))
    expect(page.locator("iframe[title='Planning']")).to_have_count(0)
