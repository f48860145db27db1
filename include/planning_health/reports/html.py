"""The report as one HTML file: styles and figures inline, no script, nothing loaded from elsewhere."""

from __future__ import annotations

import re
from functools import cache
from typing import Final

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from planning_health.pages.links import in_airflow
from planning_health.reports.decisions import how_to_decide
from planning_health.reports.glossary import signal_label, signal_meaning, signal_unit
from planning_health.reports.model import LabelledBar, Number, Report, TableReport
from planning_health.wording import (
    NOT_MEASURED,
    counted,
    day,
    moment,
    of_total,
    plain_number,
    quantity,
    relative,
    rough_time,
    sentence,
    short_file_names,
    short_unit,
    shortened,
    state_name,
    week,
)

MAX_ATTENTION: Final = 15
"""Tables that are told of at the top; the others stand in the overview."""

MAX_WARNINGS: Final = 10
"""Warnings at the top; the JSON file has them all."""

MAX_TABLES_IN_MAIL: Final = 60
MAX_NEXT_IN_MAIL: Final = 40
"""Mail clients cut a message after about 100 KB."""

MAX_TABLES_WITH_SIGNALS: Final = 40
"""Above it the page leaves the lists of all signals to the JSON file, so that it stays small."""

_PLOT_HEIGHT: Final = 210.0
LIGHT: Final = {
    "page": "#ffffff",
    "ink": "#1b2430",
    "muted": "#566272",
    "line": "#dde3e9",
    "panel": "#f5f7f9",
    "link": "#1d5fa8",
    "bar": "#3f74ad",
    "quiet": "#c3d0dd",
    "emphasis": "#b4531a",
    "critical": "#b3261e",
    "warning": "#8f5f00",
    "ok": "#1c7047",
    "failed": "#6a3fa0",
}
DARK: Final = {
    "page": "#12161c",
    "ink": "#e6ebf1",
    "muted": "#9eabb8",
    "line": "#2b343f",
    "panel": "#1a2029",
    "link": "#86bbf2",
    "bar": "#6ea6e0",
    "quiet": "#3a4757",
    "emphasis": "#f0a266",
    "critical": "#ff8f85",
    "warning": "#e5b84b",
    "ok": "#63d29c",
    "failed": "#c7aaf7",
}


def render_html(report: Report) -> str:
    """The report as a self-contained HTML document."""
    return (
        report_environment()
        .get_template("report.html.j2")
        .render(
            report=report,
            max_attention=MAX_ATTENTION,
            max_warnings=MAX_WARNINGS,
            max_tables_with_signals=MAX_TABLES_WITH_SIGNALS,
            light=LIGHT,
            dark=DARK,
        )
    )


def render_mail(report: Report, url: str | None = None) -> str:
    """The report's overview as HTML that mail clients show: no style sheet, script or picture.

    Args:
        report: the report.
        url: where the whole report is to be read, if it has an address.
    """
    return (
        report_environment()
        .get_template("mail.html.j2")
        .render(
            report=report,
            url=url,
            max_attention=MAX_ATTENTION,
            max_warnings=MAX_WARNINGS,
            max_next=MAX_NEXT_IN_MAIL,
            max_tables=MAX_TABLES_IN_MAIL,
            colours=LIGHT,
        )
    )


@cache
def report_environment() -> Environment:
    """The templates of the report with their filters; they fetch nothing and escape everything."""
    environment = Environment(
        loader=PackageLoader("planning_health.reports", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(
        bar_list=_bar_list,
        breakable=_breakable,
        cell=_cell,
        counted=counted,
        day=day,
        how_to_decide=how_to_decide,
        in_airflow=in_airflow,
        moment=moment,
        of_total=of_total,
        percent=_percent,
        quantity=quantity,
        relative=relative,
        rough_time=rough_time,
        rounded=_rounded,
        row_pitch=_row_pitch,
        sentence=sentence,
        short_file_names=short_file_names,
        short_unit=short_unit,
        shortened=shortened,
        signal_label=signal_label,
        signal_meaning=signal_meaning,
        signal_unit=signal_unit,
        state_name=state_name,
        tiles=_tiles,
        week=week,
    )
    return environment


def _breakable(name: str) -> Markup:
    """A dotted name, escaped, that may be broken after its dots and underscores."""
    return Markup(re.sub(r"([._])", r"\1<wbr>", str(escape(name))))  # noqa: S704  # escaped before


def _percent(fraction: float) -> str:
    return f"{fraction * 100:.2f}".rstrip("0").rstrip(".") + "%"


def _row_pitch(rows: int) -> float:
    """Pixels for each manifest's bar, so that few bars are not fat and many are still visible."""
    return round(min(max(_PLOT_HEIGHT / max(rows, 1), 2.5), 14.0), 2)


def _rounded(value: Number | None) -> str:
    return NOT_MEASURED if value is None else plain_number(round(value, 1))


def _bar_list(bars: list[LabelledBar]) -> str:
    return "; ".join(f"{bar.label} {bar.value}" for bar in bars)


def _cell(table: TableReport, key: str) -> str:
    number = table.number(key)
    return (
        "–"
        if number is None or number.value is None or table.state == "failed"
        else quantity(number.value, number.unit)
    )


def _tiles(report: Report) -> list[tuple[str, int, str]]:
    summary = report.summary
    tiles = [
        ("critical", summary.critical, "critical"),
        ("warning", summary.warning, "warning"),
        ("ok", summary.ok, ""),
        ("could not be measured", summary.failed, "failed"),
        ("proposal" if summary.proposals == 1 else "proposals", summary.proposals, ""),
        ("action taken" if summary.actions == 1 else "actions taken", summary.actions, ""),
    ]
    if summary.not_measured:
        tiles.insert(4, ("not diagnosed", summary.not_measured, "warning"))
    return tiles
