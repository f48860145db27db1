"""From the page of a table to its repair, as a person does it in Airflow's UI."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import FrameLocator, Page, expect

from .conftest import COMMITS, EVENTS, RUN_SECONDS, Airflow

if TYPE_CHECKING:
    from playwright.sync_api import BrowserContext

pytestmark = [pytest.mark.airflow, pytest.mark.spark, pytest.mark.timeout(1800)]

PAGE = "/plugin/planning-health"


def log_in(context: BrowserContext, airflow: Airflow) -> Page:
    """A person who has logged in."""
    page = context.new_page()
    page.goto(airflow.url)
    page.locator("input[name=username]").fill(airflow.login)
    page.locator("input[name=password]").fill(airflow.password)
    page.keyboard.press("Enter")
    page.get_by_role("link", name="Dags", exact=True).wait_for()
    return page


def frame(page: Page) -> FrameLocator:
    """The "Planning health" page inside Airflow's."""
    return page.frame_locator("iframe[title='Planning']")


def test_anonymous_access_is_refused(context: BrowserContext, airflow: Airflow) -> None:
    for path in ("/", f"/table?name={EVENTS}", "/reports", "/page.css"):
        assert context.request.get(f"{airflow.url}/planning-health{path}").status == 401
    page = context.new_page()
    page.goto(airflow.url + PAGE)
    expect(page).to_have_url(re.compile("/auth/login"))


def test_a_table_is_repaired_from_its_page_with_approval_and_the_report_changes(
    context: BrowserContext, airflow: Airflow
) -> None:
    page = log_in(context, airflow)

    page.get_by_role("link", name="Planning", exact=True).click()
    expect(frame(page).get_by_text("No run has left a report yet")).to_be_visible()
    airflow.start(context.request, "planning_health_weekly")

    page.goto(airflow.url + PAGE)
    frame(page).get_by_role("link", name=str(EVENTS)).click()
    expect(page).to_have_url(re.compile(f"{PAGE}/planning-health/table"))
    expect(frame(page).get_by_role("img", name=f"{COMMITS} of {COMMITS} manifests cover")).to_be_visible()

    frame(page).get_by_role("link", name="Start maintenance with these values").click()
    expect(frame(page).get_by_role("radio", name="Dry run")).to_be_checked()
    frame(page).get_by_role("radio", name="Change the table").check()
    expect(frame(page).get_by_role("radio", name="Ask a person")).to_be_checked()
    frame(page).get_by_role("button", name="Start the run").click()
    expect(frame(page).get_by_text("This run has left no report yet")).to_be_visible()
    own_page = page.url

    expect(frame(page).get_by_text("Rewrite")).to_be_visible(timeout=RUN_SECONDS * 1000)
    airflow.await_decision(context.request, "table_maintenance")
    frame(page).get_by_role("link", name="Approve or reject it").click()
    expect(page).to_have_url(re.compile("/dags/table_maintenance/runs/.*/tasks/approve/required_actions"))
    page.get_by_role("button", name="Approve").click()

    page.goto(own_page)
    report = frame(page).get_by_role("link", name="The report of this run")
    report.wait_for(timeout=RUN_SECONDS * 1000)
    report.click()
    expect(frame(page).get_by_text("done and checked").first).to_be_visible()

    page.goto(f"{airflow.url}{PAGE}/planning-health/table?name={EVENTS}")
    expect(frame(page).get_by_text("State, findings and pictures are from before the repair")).to_be_visible()

    airflow.start(context.request, "planning_health_weekly")
    page.reload()
    expect(frame(page).get_by_text(f"{COMMITS} of {COMMITS} manifests before, 1 of")).to_be_visible()
    expect(frame(page).get_by_text("State, findings and pictures are from before the repair")).to_have_count(0)
    frame(page).get_by_role("link", name="Reports").click()
    expect(frame(page).get_by_role("link", name="Report of")).to_have_count(2)
    frame(page).get_by_role("link", name="Report of").first.click()
    expect(frame(page).get_by_text("1 repair was made and checked").first).to_be_visible()


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


def test_it_fits_a_narrow_window(context: BrowserContext, airflow: Airflow) -> None:
    page = log_in(context, airflow)
    page.set_viewport_size({"width": 400, "height": 800})
    for path in ("/", f"/table?name={EVENTS}", "/reports"):
        page.goto(f"{airflow.url}/planning-health{path}")
        assert page.evaluate("document.documentElement.scrollWidth") <= 400
