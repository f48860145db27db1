"""The report's one model: HTML, Markdown, JSON, the terminal's summary and the figures are made from it alone.

A value of ``None`` means "not measured" everywhere; it is never shown as 0.
"""

from __future__ import annotations

from typing import Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field

Level = Literal["critical", "warning", "ok", "not_measured"]
State = Literal["critical", "warning", "ok", "not_measured", "failed"]
Direction = Literal["better", "worse", "neutral"]
Number = int | float

APPLY: Final = "--apply"
"""Stands last in a command that carries a proposal out; without it the command is a dry run."""

NOTABLE: Final = 0.05
"""The share of a repaired number that the next append must add to it, to be worth a word."""

STATE_ORDER: Final[dict[str, int]] = {"critical": 0, "failed": 1, "warning": 2, "not_measured": 3, "ok": 4}
"""What is shown first."""


class _Part(BaseModel):
    """A part of the report; unknown keys of a newer report are passed over."""

    model_config = ConfigDict(frozen=True, extra="ignore")


class KeyNumber(_Part):
    """One number of a table, with the unit that it is shown in."""

    key: str
    label: str
    value: Number | None
    unit: str = ""
    note: str = ""
    level: Level = "ok"


class Signal(_Part):
    """One signal as the diagnosis measured it."""

    scope: str
    scope_key: str = ""
    signal: str
    value: Number | None = None
    unit: str = ""
    level: Level = "not_measured"


class Finding(_Part):
    """Something that makes planning slow, with its evidence."""

    id: str
    title: str
    level: Level
    signal: str = ""
    scope_key: str = ""
    value: Number | None = None
    unit: str = ""
    threshold: Number | None = None
    evidence: str = ""
    explanation: str = ""
    recommendation: str = ""


class Step(_Part):
    """One of the six diagnostic steps."""

    step: int
    title: str
    level: Level = "not_measured"
    evidence: str = ""


class ManifestRow(_Part):
    """One manifest of the two worst-five lists."""

    name: str
    path: str
    deleted_ratio: float | None = None
    range_text: str = ""
    range_days: Number | None = None
    entries: int | None = None
    live: bool = True
    in_both: bool = False


class QueryCost(_Part):
    """What one query of the workload makes planning read; one that does not fit the table is not ``planned``.

    ``planning_ms`` is Iceberg's own planning time where it was measured; ``predicted_ms`` a prediction.
    """

    name: str
    where: str
    weight: float = 1.0
    manifests_total: int | None = None
    manifests_opened: int | None = None
    files_total: int | None = None
    files_result: int | None = None
    metadata_bytes: int | None = None
    planning_ms: float | None = None
    predicted_ms: float | None = None
    tasks: int | None = None
    heaviest: bool = False
    planned: bool = True
    note: str = ""


class Comparison(_Part):
    """One number before an action, as predicted, and after it; ``next_append`` is predicted for the append after."""

    key: str
    label: str
    unit: str = ""
    before: Number | None = None
    predicted: Number | None = None
    after: Number | None = None
    next_append: Number | None = None

    @property
    def moves(self) -> bool:
        """Whether the number is predicted to change."""
        return self.before != self.predicted

    @property
    def undone_by_append(self) -> bool:
        """Whether the next append is predicted to take a part of the gain back."""
        if self.next_append is None or self.predicted is None:
            return False
        return self.next_append > self.predicted * (1 + NOTABLE)

    @property
    def off(self) -> float | None:
        """How far the prediction is from what came true, as a share of it; ``None`` before that is known."""
        if self.predicted is None or self.after is None:
            return None
        if self.predicted == self.after:
            return 0.0
        return abs(self.predicted - self.after) / abs(self.after) if self.after else None


class Proposal(_Part):
    """A repair that can be made, with its predicted effect; ``params`` are its values for the maintenance form.

    ``page`` is where that form is filled in with them, below the address of the "Planning health" page; ``run_command``
    carries it out from the command line, where what ``needs`` names is there; ``approval`` says whether a person is
    asked before; ``caution`` that the next append is predicted to undo it; ``answers`` are the ids of the findings that
    it removes or makes smaller.
    """

    id: str
    action: str
    title: str
    why: str = ""
    risk: str = ""
    run_command: str = ""
    params: dict[str, Any] = Field(default_factory=dict)
    commands: list[str] = Field(default_factory=list)
    undo: list[str] = Field(default_factory=list)
    effect: list[Comparison] = Field(default_factory=list)
    summary: str = ""
    form: str = ""
    page: str = ""
    approval: str = ""
    needs: str = ""
    caution: str = ""
    answers: list[str] = Field(default_factory=list)

    @property
    def dry_run_command(self) -> str:
        """The command that shows what would change, and changes nothing; empty for a recommendation."""
        return self.run_command.removesuffix(f" {APPLY}")

    @property
    def runnable(self) -> bool:
        """Whether maintenance can run it; the others are recommended only."""
        return bool(self.run_command)


class AlternativeReads(_Part):
    """What planning one query reads as the table is, and with an alternative."""

    name: str
    where: str = ""
    manifests: tuple[int, int]
    data_files: tuple[int, int]
    metadata_bytes: tuple[int, int]


class Alternative(_Part):
    """Another layout that a what-if run predicted: other manifests, fewer statistics, another partition spec."""

    title: str
    notes: list[str] = Field(default_factory=list)
    reads: list[AlternativeReads] = Field(default_factory=list)
    summary: str = ""


class Simulation(_Part):
    """A simulation of the heaviest query as a small table: its rows are ready to be shown."""

    kind: Literal["assignment", "plan_tasks"]
    title: str
    text: str
    columns: list[str]
    rows: list[list[str]]
    notes: list[str] = Field(default_factory=list)
    summary: str


class ActionStep(_Part):
    """One step of an action."""

    step: str
    status: str
    reason: str | None = None
    seconds: float | None = None


class Action(_Part):
    """Something that was done to a table since the last report; a rollback is an action that undoes another."""

    table: str
    anchor: str
    run_id: str
    dag_id: str
    started_at: str
    at: str
    state: str
    title: str
    reason: str | None = None
    kind: Literal["repair", "rollback"] = "repair"
    succeeded: bool = False
    undone_at: str | None = None
    steps: list[ActionStep] = Field(default_factory=list)
    effect: list[Comparison] = Field(default_factory=list)
    summary: str = ""
    rollback: str | None = None

    @property
    def stands(self) -> bool:
        """Whether this is a repair that was made and that nobody has undone."""
        return self.kind == "repair" and self.succeeded and self.undone_at is None


class Tick(_Part):
    """A mark on a figure's axis; ``at`` runs from 0 to 1."""

    at: float
    label: str


class Span(_Part):
    """One manifest on the partition axis; both ends run from 0 to 1."""

    start: float
    end: float
    label: str
    crossed: bool = False


class RangePanel(_Part):
    """The manifests of one moment on the partition axis."""

    title: str
    manifests: int
    crossed: int
    spans: list[Span]


class RangeFigure(_Part):
    """Partition range per manifest: what a lookup of one value must open."""

    kind: Literal["ranges"] = "ranges"
    field: str
    lookup: str
    lookup_at: float
    ticks: list[Tick]
    panels: list[RangePanel]
    caption: str


class DepthBar(_Part):
    """Depth over a stretch of the partition axis."""

    start: float
    end: float
    depth: float
    label: str


class DepthPanel(_Part):
    """Overlap depth at one moment."""

    title: str
    mean: float | None
    worst: float | None
    bars: list[DepthBar]


class DepthFigure(_Part):
    """Overlap depth along the partition axis."""

    kind: Literal["depth"] = "depth"
    field: str
    highest: float
    ticks: list[Tick]
    panels: list[DepthPanel]
    caption: str


class LabelledBar(_Part):
    """A bar with its label; ``share`` of the figure's full width runs from 0 to 1."""

    label: str
    value: str
    share: float
    emphasis: bool = False


class BarPanel(_Part):
    """A group of labelled bars."""

    title: str
    bars: list[LabelledBar]


class BarFigure(_Part):
    """Labelled bars: bytes by column, bytes per task, bytes at home, plans by number of replicas."""

    kind: Literal["columns", "assignment", "affinity", "plan_tasks"]
    title: str
    panels: list[BarPanel]
    caption: str


class FieldFigures(_Part):
    """The two figures of one partition field."""

    panels: int
    ranges: RangeFigure | None = None
    depth: DepthFigure | None = None


class Figures(_Part):
    """The figures of one table; one that cannot be drawn from what was measured is missing."""

    fields: list[FieldFigures] = Field(default_factory=list)
    columns: BarFigure | None = None
    assignment: BarFigure | None = None
    affinity: BarFigure | None = None
    plan_tasks: BarFigure | None = None

    @property
    def has_work(self) -> bool:
        """Whether there is a figure of how a query's work is shared or handed out."""
        return bool(self.assignment or self.affinity or self.plan_tasks)


class FailedExpectation(_Part):
    """A check of the measurement that failed."""

    name: str
    observed: str = ""
    expected: str = ""


class Growth(_Part):
    """How a number of a repaired table grows back; ``half_lost_days`` from the repair, ``None`` when it does not."""

    key: str
    label: str
    unit: str = ""
    before: Number
    after: Number
    now: Number
    per_day: float
    half_lost_days: float | None = None


class Upkeep(_Part):
    """How fast what the last repair gained is lost, how often to repair therefore, and what keeps it longer."""

    repaired_at: str
    days: float
    measurements: int
    growth: list[Growth]
    cadence_days: int | None = None
    text: str
    advice: str = ""

    @property
    def lost(self) -> bool:
        """Whether half of what the repair gained is lost already."""
        return self.cadence_days is not None and self.cadence_days <= self.days


class TableReport(_Part):
    """Everything that the report says about one table."""

    table: str
    anchor: str
    state: State
    previous_state: State | None = None
    reason: str | None = None
    verdict: str = ""
    table_uuid: str | None = None
    snapshot_id: int | None = None
    measured_at: str | None = None
    due: bool = True
    recorder: str | None = None
    format_version: int | None = None
    numbers: list[KeyNumber] = Field(default_factory=list)
    findings: list[Finding] = Field(default_factory=list)
    steps: list[Step] = Field(default_factory=list)
    signals: list[Signal] = Field(default_factory=list)
    worst_deleted: list[ManifestRow] = Field(default_factory=list)
    worst_ranges: list[ManifestRow] = Field(default_factory=list)
    queries: list[QueryCost] = Field(default_factory=list)
    proposals: list[Proposal] = Field(default_factory=list)
    alternatives: list[Alternative] = Field(default_factory=list)
    simulations: list[Simulation] = Field(default_factory=list)
    no_op_reason: str | None = None
    planning_told: str = ""
    statistics_told: str = ""
    upkeep: Upkeep | None = None
    actions: list[Action] = Field(default_factory=list)
    failed_expectations: list[FailedExpectation] = Field(default_factory=list)
    missing: list[str] = Field(default_factory=list)
    failed_steps: list[str] = Field(default_factory=list)
    figures: Figures = Figures()

    @property
    def quiet(self) -> bool:
        """Whether the table asks for no attention: its section is kept short."""
        return self.state == "ok" and not self.actions and not self.proposals

    def number(self, key: str) -> KeyNumber | None:
        """The key number of that name, or ``None`` when the table has none."""
        return next((number for number in self.numbers if number.key == key), None)


class Attention(_Part):
    """One entry of "what needs attention first": a table, what that costs (``evidence``), and what to do next."""

    table: str
    anchor: str
    level: State
    title: str
    evidence: str = ""
    more: int = 0
    next_step: str = ""


class Improvement(_Part):
    """Something that got better."""

    table: str
    anchor: str
    texts: list[str]


class FindingChange(_Part):
    """A finding that is new, or gone."""

    table: str
    anchor: str
    title: str
    level: Level


class StateChange(_Part):
    """A table whose state is another than in the last report."""

    table: str
    anchor: str
    before: State
    after: State
    direction: Direction


class NumberChange(_Part):
    """A key number that moved."""

    table: str
    anchor: str
    label: str
    unit: str
    before: Number
    after: Number
    direction: Direction


class PreviousReport(_Part):
    """The report that this one is compared with."""

    run_id: str
    created_at: str


class Changes(_Part):
    """What changed since the previous report; empty when there is none."""

    states: list[StateChange] = Field(default_factory=list)
    new_findings: list[FindingChange] = Field(default_factory=list)
    resolved_findings: list[FindingChange] = Field(default_factory=list)
    numbers: list[NumberChange] = Field(default_factory=list)
    new_tables: list[str] = Field(default_factory=list)
    gone_tables: list[str] = Field(default_factory=list)

    @property
    def empty(self) -> bool:
        """Whether nothing changed."""
        return not any(getattr(self, name) for name in type(self).model_fields)


class GlossaryEntry(_Part):
    """One line that explains a signal; one that is not ``basic`` stands in the list of all signals only."""

    term: str
    meaning: str
    basic: bool = True


class Summary(_Part):
    """The headline numbers; tables = critical + warning + ok + failed + not_measured."""

    tables: int = 0
    critical: int = 0
    warning: int = 0
    ok: int = 0
    failed: int = 0
    not_measured: int = 0
    proposals: int = 0
    actions: int = 0


class Report(_Part):
    """The report: of the week, of chosen tables, or of one maintenance or what-if run (``scope``).

    ``warnings`` are what the reader must know before trusting the rest: queries and steps that were left out.
    """

    schema_version: int = 1
    scope: Literal["week", "chosen", "run"] = "week"
    title: str
    run_id: str
    dag_id: str
    created_at: str
    measured_from: str | None = None
    measured_until: str | None = None
    product_version: str
    actions_since: str | None = None
    previous: PreviousReport | None = None
    summary: Summary
    lede: str
    warnings: list[str] = Field(default_factory=list)
    airflow_url: str | None = None
    attention: list[Attention] = Field(default_factory=list)
    improvements: list[Improvement] = Field(default_factory=list)
    changes: Changes = Changes()
    tables: list[TableReport] = Field(default_factory=list)
    actions: list[Action] = Field(default_factory=list)
    limits: list[str] = Field(default_factory=list)
    glossary: list[GlossaryEntry] = Field(default_factory=list)

    @property
    def whole_week(self) -> bool:
        """Whether this is the report of the week, on all tables."""
        return self.scope == "week"

    @property
    def is_overview(self) -> bool:
        """Whether this is an overview of tables, and not a report on a single run."""
        return self.scope != "run"

    @property
    def is_decided(self) -> bool:
        """Whether this is the report of a run that has acted: what it proposed waits for nobody any more."""
        return self.scope == "run" and bool(self.actions)

    @property
    def repaired(self) -> list[TableReport]:
        """The tables of which is known how their last repair lasts."""
        return [table for table in self.tables if table.upkeep is not None]

    @property
    def next_steps(self) -> list[tuple[TableReport, Proposal]]:
        """What to do next, in the order of the tables: every rendering lists the same."""
        return [(table, proposal) for table in self.tables for proposal in table.proposals]
