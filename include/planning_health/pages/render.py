"""The pages as HTML: templates of our own on top of the report's, so that figures and words are the same."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Any, Final

from jinja2 import ChoiceLoader, Environment, PackageLoader

from planning_health import __version__
from planning_health.pages.links import Links
from planning_health.reports.html import DARK, LIGHT, MAX_ATTENTION, MAX_TABLES_WITH_SIGNALS, report_environment

_NAMED: Final = {name: f"var(--{name})" for name in LIGHT}
"""The report's colours by name: the pages choose light or dark as Airflow's own switch says."""


def render(template: str, links: Links, **values: Any) -> str:
    """A page as an HTML document.

    Args:
        template: name without extension.
        links: where the pages are served.
        values: what the template shows; everything is escaped.
    """
    return (
        _environment()
        .get_template(f"{template}.html.j2")
        .render(
            links=links,
            version=__version__,
            max_attention=MAX_ATTENTION,
            max_tables_with_signals=MAX_TABLES_WITH_SIGNALS,
            **values,
        )
    )


@cache
def stylesheet() -> str:
    """The style of the report with colours by name, and what the pages add to it."""
    return (
        _environment()
        .get_template("page.css.j2")
        .render(light=_NAMED, dark=_NAMED, colours_light=LIGHT, colours_dark=DARK)
    )


@cache
def script() -> str:
    """What the pages add when scripts run: Airflow's light or dark, and links that leave its frame."""
    return (files("planning_health.pages") / "templates" / "page.js").read_text(encoding="utf-8")


@cache
def _environment() -> Environment:
    base = report_environment()
    own = PackageLoader("planning_health.pages", "templates")
    return base.overlay(loader=ChoiceLoader([own, base.loader] if base.loader else [own]))
