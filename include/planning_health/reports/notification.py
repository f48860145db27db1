"""Short messages on a run: a table turned critical, a report is ready, a run failed. Plain text, with a link."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from planning_health.reports.model import Report, TableReport
from planning_health.wording import clipped, counted, sentence, visible

Event = Literal["critical", "failed", "report"]

MOST_TABLES: Final = 5
_MOST_REASON: Final = 400


@dataclass(frozen=True)
class Notification:
    """One message.

    Attributes:
        event: what happened.
        title: one line.
        text: some lines of plain text, the title among them, and the link at the end.
        url: where to read on; ``None`` when Airflow's address is not known.
    """

    event: Event
    title: str
    text: str
    url: str | None

    @classmethod
    def of(cls, event: Event, title: str, lines: Sequence[str], url: str | None) -> Notification:
        """A message whose names cannot be read as mark-up or mentions by a chat."""
        told = [_harmless(line) for line in (title, *lines)]
        return cls(event, told[0], "\n".join([*told, *([url] if url else [])]), url)


def report_notifications(report: Report, url: str | None, *, only_changes: bool) -> Iterator[Notification]:
    """What a written report has to say.

    Args:
        report: the report of the week.
        url: where it is read.
        only_changes: nothing when nothing changed: of critical tables those that were not critical before, and a
            report only when something is new, gone, better, worse, or was done.
    """
    critical = [table for table in report.tables if table.state == "critical"]
    if only_changes:
        critical = [table for table in critical if table.previous_state != "critical"]
    if critical:
        verb = "became" if only_changes else "is" if len(critical) == 1 else "are"
        title = f"{counted(len(critical), 'table')} {verb} critical to plan"
        yield Notification.of("critical", title, _critical(critical), url)
    if not only_changes or has_news(report):
        yield Notification.of("report", f"{report.title}: the report is ready", [report.lede], url)


def failure_notification(dag_id: str, run_id: str, reason: str, url: str | None, *, late: bool = False) -> Notification:
    """A run that failed, with the reason that it gave, or that is late."""
    lines = [clipped(visible(reason), _MOST_REASON), f"Run {run_id}"]
    return Notification.of("failed", f"{dag_id} {'is late' if late else 'failed'}", lines, url)


def has_news(report: Report) -> bool:
    """Whether the report differs from the one before it, or tells of something that was done since."""
    if report.previous is None or not report.changes.empty:
        return True
    return any(action.at > report.previous.created_at for action in report.actions)


def _critical(tables: Sequence[TableReport]) -> list[str]:
    lines = [f"- {table.table}: {sentence(table.verdict)}" for table in tables[:MOST_TABLES]]
    more = len(tables) - len(lines)
    return [*lines, f"- and {counted(more, 'more table')}"] if more else lines


def _harmless(text: str) -> str:
    """Names come from other people's tables: ``<!channel>`` must not call a whole channel."""
    return visible(text).replace("<", "‹").replace(">", "›").replace("@", "＠")
