"""The weekly report: one model, and HTML, Markdown, JSON, figures and a terminal summary made from it."""

from planning_health.reports.build import build_report, read_report
from planning_health.reports.html import render_html, render_mail
from planning_health.reports.markdown import render_markdown
from planning_health.reports.model import Report
from planning_health.reports.terminal import terminal_predictions, terminal_summary

__all__ = [
    "Report",
    "build_report",
    "read_report",
    "render_html",
    "render_mail",
    "render_markdown",
    "terminal_predictions",
    "terminal_summary",
]
