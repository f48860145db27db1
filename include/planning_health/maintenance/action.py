"""Runs an approved maintenance request on one table: guard, set properties, rewrite, verify, measure again.

The order is what makes it safe: nothing is set before every guard holds, every commit carries the run id and is
compared with the snapshot right before it, and a failure says whether and how the table can be rolled back. A run that
is started again under the same id finds what it did before and goes on from there.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Final

from planning_health.catalogs.definition import properties as catalog_properties
from planning_health.errors import InputError, NotMeasurableError, PlanningHealthError, WorkFailedError
from planning_health.identifiers import TableName
from planning_health.maintenance import commands
from planning_health.maintenance.guards import Environment, check_table, refusals
from planning_health.maintenance.java_table import (
    ACTION_PROPERTY,
    RUN_ID_PROPERTY,
    TRIM,
    FailureKind,
    current_snapshot_id,
    describe,
    failure_kind,
    iceberg_version,
    is_trim,
    own_snapshots,
    parent_id,
)
from planning_health.maintenance.layout import layout_of
from planning_health.maintenance.lease import LeaseHeldError, lease
from planning_health.maintenance.prediction import predict_rewrite_manifests
from planning_health.maintenance.properties import (
    PROPERTY_CHANGES,
    PropertyChange,
    PropertyPlan,
    apply_properties,
    merge_changes,
    plan_properties,
    recorded_changes,
)
from planning_health.maintenance.proposals import SpecDecision, decide_specs, effect_of, requested_rule, target_of
from planning_health.maintenance.request import MaintenanceRequest
from planning_health.maintenance.rewrite import (
    CommitStateUnknownError,
    ConflictError,
    NothingToRewriteError,
    RewriteTask,
    rewrite_manifests,
    rewrite_with_iceberg,
)
from planning_health.maintenance.steps import Step, StepLog
from planning_health.maintenance.trim.prediction import TrimPrediction, predict_trim
from planning_health.maintenance.trim.rewrite import trim_manifests
from planning_health.maintenance.trim.rule import TrimRule
from planning_health.maintenance.trim.verification import compare_trimmed
from planning_health.maintenance.verification import COMPARED_COLUMNS, Check, VerificationReport, compare_snapshots
from planning_health.maintenance.workload import Workload, opened_json
from planning_health.metadata import PlanningMetadata, SnapshotChoice, load
from planning_health.metadata.record_spark import load_java_table, record_with_spark
from planning_health.run_folder import RunFolder
from planning_health.settings import Query, SettingsDocument

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

logger = logging.getLogger(__name__)

_SUCCESS: Final = frozenset({"done", "planned", "no_op"})


class RefusedError(WorkFailedError):
    """A guard refuses the work."""


class VerificationFailedError(WorkFailedError):
    """What was committed is not what was there before."""


@dataclass
class ActionResult:
    """What an action did.

    Attributes:
        state: ``done``; ``planned`` (a dry run that would change something); ``no_op``; ``refused``; ``conflict``;
            ``failed``; ``verification_failed``.
        commands: the statements that do the same by hand.
        undo: those that undo the properties.
        rollback: the statement that undoes the rewrite, while our snapshot is the current one.
        snapshots: our snapshot of each rewritten spec.
        attempts: commits tried, by spec.
    """

    dry_run: bool
    state: str = "failed"
    reason: str | None = None
    log: StepLog = field(default_factory=StepLog)
    before: PlanningMetadata | None = None
    predicted: PlanningMetadata | None = None
    after: PlanningMetadata | None = None
    verification: dict[int, VerificationReport] = field(default_factory=dict)
    property_changes: tuple[PropertyChange, ...] = ()
    commands: list[str] = field(default_factory=list)
    undo: list[str] = field(default_factory=list)
    rollback: str | None = None
    snapshots: dict[int, int] = field(default_factory=dict)
    attempts: dict[int, int] = field(default_factory=dict)
    workload: Workload | None = None

    @property
    def succeeded(self) -> bool:
        """Whether the table is as it was asked for."""
        return self.state in _SUCCESS

    def as_json(self) -> dict[str, Any]:
        """The result in the shape of its file."""
        before, after = self.before, self.after
        return {
            "dry_run": self.dry_run,
            "state": self.state,
            "steps": self.log.as_json(),
            "predicted": self._effect(self.predicted),
            "actual": self._effect(after),
            "before": self._layout(before),
            "after": self._layout(after),
            "verification": {
                "success": all(report.success for report in self.verification.values()) if self.verification else None,
                "specs": {str(spec_id): report.as_json() for spec_id, report in self.verification.items()},
            },
            "properties": [asdict(change) for change in self.property_changes],
            "commands": self.commands,
            "undo": self.undo,
            "rollback": self.rollback,
            "snapshots": {str(spec_id): snapshot_id for spec_id, snapshot_id in self.snapshots.items()},
            "attempts": {str(spec_id): count for spec_id, count in self.attempts.items()},
        }

    def _effect(self, state: PlanningMetadata | None) -> dict[str, Any]:
        if self.before is None or state is None or self.workload is None:
            return {}
        return effect_of(self.before, state, self.workload)

    def _layout(self, state: PlanningMetadata | None) -> dict[str, Any]:
        if state is None or self.workload is None:
            return {}
        return layout_of(state).as_json() | {"queries": opened_json(self.workload.opened(state))}


class Action:
    """One maintenance run on one table.

    Args:
        settings: the settings.
        run_folder: the run's folder; recordings go below its table's folder.
        table: the table.
        request: what is asked for.
        spark: a classic Spark session.
        queries: the table's configured queries.
        queried: the columns of these queries, recorded with the others.
        measured: the recording that the proposal was made from, if there is one.
    """

    def __init__(
        self,
        settings: SettingsDocument,
        run_folder: RunFolder,
        table: TableName,
        request: MaintenanceRequest,
        spark: SparkSession,
        *,
        queries: Sequence[Query] = (),
        queried: frozenset[str] = frozenset(),
        measured: PlanningMetadata | None = None,
    ) -> None:
        self.settings, self.run_folder, self.table = settings, run_folder, table
        self.request, self.spark, self.queried, self.measured = request, spark, queried, measured
        self.queries = queries
        self.run_id = run_folder.run_id
        self.result = ActionResult(request.dry_run)
        self._recorded: dict[int | None, PlanningMetadata] = {}

    def run(self) -> ActionResult:
        """Does the work; a failure is a state of the result, not an exception."""
        try:
            with self._lease():
                self._work()
        except (RefusedError, LeaseHeldError, InputError) as error:
            self._fail("refused", error)
        except ConflictError as error:
            self._fail("conflict", error)
        except VerificationFailedError as error:
            self._fail("verification_failed", error)
        except PlanningHealthError as error:
            self._fail("failed", error)
        except Exception as error:  # the state must be told, whatever happened
            logger.exception("maintenance of %s failed", self.table)
            self._fail("failed", WorkFailedError(describe(error)))
        return self.result

    def _fail(self, state: str, error: PlanningHealthError) -> None:
        result = self.result
        result.state, result.reason = state, str(error)
        try:
            result.snapshots = own_snapshots(self._java_table(), self.run_id)
            result.rollback = self._rollback_command()
        except Exception as lookup:  # the catalog may be what failed
            logger.warning("whether %s can be rolled back is not known: %s", self.table, describe(lookup))
            if not self.request.dry_run and any(step.step != "guard" for step in result.log.steps):
                result.reason = f"{error}; the table cannot be asked what has landed: run it again under the same id"

    def _lease(self) -> AbstractContextManager[None]:
        if self.request.dry_run:
            return nullcontext()
        return lease(self.settings.home, self.table, self.run_id, self.spark.sparkContext.applicationId)

    def _java_table(self) -> Any:
        return load_java_table(self.spark, self.table)

    # The steps, in their order.

    def _work(self) -> None:
        log = self.result.log
        with log.step("guard") as step:
            current = self._guard(step)
        with log.step("set_properties") as step:
            self._set_properties(step, current)
        with log.step("trim_statistics" if self.request.trims else "rewrite_manifests") as step:
            self._rewrite(step, current)
        if self.result.snapshots:
            with log.step("verify") as step:
                self._verify(step)
            with log.step("measure_again") as step:
                self._measure_again(step)
        self._conclude()

    def _guard(self, step: Step) -> PlanningMetadata:
        java_table = self._java_table()
        self.result.snapshots = own_snapshots(java_table, self.run_id)
        current = self._current(step, java_table)
        self.result.before = current
        self.result.workload = self.workload = Workload.of(current, self.queries)
        guards = check_table(current, self._environment())
        step.details["guards"] = [guard.model_dump() for guard in guards]
        if refused := refusals(guards):
            raise RefusedError("; ".join(refused))
        return current

    def _environment(self) -> Environment:
        return Environment(
            iceberg_version=iceberg_version(self.spark),
            wap_branch=self.spark.conf.get("spark.wap.branch", None),
            catalog_type=catalog_properties(self.settings, self.table.catalog).get("type"),
        )

    def _current(self, step: Step, java_table: Any) -> PlanningMetadata:
        """The proposal's measurement while the table is as it was then; else a new one."""
        location = java_table.operations().current().metadataFileLocation()
        if self.measured is not None and self.measured.info.metadata_location == location:
            step.details["snapshot"] = "unchanged since the proposal"
            self._recorded[self.measured.info.snapshot_id] = self.measured
            return self.measured
        step.details["snapshot"] = "changed since the proposal: measured again" if self.measured else "measured"
        return self._record("current", SnapshotChoice())

    def _record(self, name: str, choice: SnapshotChoice) -> PlanningMetadata:
        folder = f"{self.run_folder.url}/{self.run_folder.table_path(self.table)}/maintenance/{name}"
        info = record_with_spark(self.spark, self.table, folder, queried=self.queried, choice=choice)
        self._recorded[info.snapshot_id] = load(folder)
        return self._recorded[info.snapshot_id]

    def _at(self, snapshot_id: int) -> PlanningMetadata:
        if snapshot_id not in self._recorded:
            self._record(str(snapshot_id), SnapshotChoice(snapshot_id=snapshot_id))
        return self._recorded[snapshot_id]

    def _set_properties(self, step: Step, current: PlanningMetadata) -> None:
        if not self.request.sets_properties:
            return step.skip("not requested")
        plan = plan_properties(current.info, self.request)
        step.details["notes"] = list(plan.notes)
        self._remember_properties(plan)
        if not plan.changes:
            return step.skip("the properties have these values already")
        step.details["commands"] = plan.commands(self.table)
        self.result.commands += plan.commands(self.table)
        if self.request.dry_run:
            return step.skip("dry run")
        self.run_folder.write_result(
            PROPERTY_CHANGES, table=self.table, data=[asdict(change) for change in self.result.property_changes]
        )
        self._commit_properties(plan)
        return None

    def _remember_properties(self, plan: PropertyPlan) -> None:
        """The changes and how to undo them; those of an earlier attempt of this run are kept."""
        changes = merge_changes(recorded_changes(self.run_folder, self.table), plan.changes)
        self.result.property_changes = changes
        self.result.undo = PropertyPlan(changes, ()).undo(self.table)

    def _commit_properties(self, plan: PropertyPlan) -> None:
        try:
            apply_properties(self._java_table(), plan)
        except PlanningHealthError:
            raise
        except Exception as error:
            failures = {FailureKind.CONFLICT: ConflictError, FailureKind.OTHER: WorkFailedError}
            failure = failures.get(failure_kind(error))
            if failure is not None and self._unset(plan):  # an error does not prove that the commit did not land
                raise failure(f"the properties could not be set: {describe(error)}") from error
        if different := self._unset(plan):
            raise CommitStateUnknownError(
                f"properties {', '.join(different)} do not have the new values after the commit"
            )

    def _unset(self, plan: PropertyPlan) -> list[str]:
        properties = self._java_table().properties()
        return [change.key for change in plan.changes if properties.get(change.key) != change.after]

    def _rewrite(self, step: Step, current: PlanningMetadata) -> None:
        if not (self.request.rewrites_manifests or self.request.trims):
            return step.skip("not requested")
        decisions = decide_specs(current, self.request, self.workload)
        done = self.result.snapshots
        step.details["specs"] = {str(d.spec_id): self._shown(d) for d in decisions}
        to_do = [d for d in decisions if d.worthwhile and d.spec_id not in done]
        self.result.commands += [d.command(self.table, self.request.sort_by) for d in to_do]
        if not to_do:
            reasons = "; ".join(d.reason for d in decisions if d.spec_id not in done) or "the table is empty"
            return step.skip("this run has rewritten them already" if done else reasons)
        if self.request.dry_run:
            self.result.predicted = to_do[-1].prediction.metadata if to_do[-1].prediction else None
            return step.skip("dry run")
        skipped = [reason for decision in to_do if (reason := self._rewrite_spec(decision))]
        self.result.snapshots = own_snapshots(self._java_table(), self.run_id)
        step.details["snapshots"] = {str(spec): snapshot for spec, snapshot in self.result.snapshots.items()}
        if not self.result.snapshots:
            return step.skip("; ".join(skipped))
        return None

    def _shown(self, decision: SpecDecision) -> str:
        if decision.spec_id in self.result.snapshots:
            return f"rewritten by snapshot {self.result.snapshots[decision.spec_id]} of this run"
        return decision.reason

    def _rewrite_spec(self, decision: SpecDecision) -> str | None:
        """Rewrites one spec; returns the reason when a concurrent commit has made it pointless."""
        only = self.request.model_copy(update={"spec_id": decision.spec_id})
        task = RewriteTask(self.table, decision.spec_id, tuple(self.request.sort_by), self.run_id)
        decided = [decision]

        def measure_again() -> None:
            decided.append(decide_specs(self._record("current", SnapshotChoice()), only, self.workload)[0])
            if not decided[-1].worthwhile:
                raise NothingToRewriteError(decided[-1].reason)

        def commit(java_table: Any) -> None:
            prediction = decided[-1].prediction
            if isinstance(prediction, TrimPrediction):
                trim_manifests(self.spark, java_table, prediction, task.summary() | {ACTION_PROPERTY: TRIM})
            else:
                rewrite_with_iceberg(self.spark, task, java_table)

        try:
            outcome = rewrite_manifests(
                self.spark,
                task,
                commit,
                max_attempts=self.settings.maintenance.max_attempts,
                measure_again=measure_again,
            )
        except NothingToRewriteError as nothing:
            return str(nothing)
        self.result.attempts[decision.spec_id] = outcome.attempts
        return None

    def _verify(self, step: Step) -> None:
        java_table = self._java_table()
        for spec_id, snapshot_id in self.result.snapshots.items():
            parent = parent_id(java_table, snapshot_id)
            if parent is None or java_table.snapshot(parent) is None:
                raise VerificationFailedError(f"the snapshot before ours ({snapshot_id}) has been expired")
            report = self._compare(java_table, spec_id, parent, snapshot_id)
            report = report.with_check(_operation_check(java_table.snapshot(snapshot_id), self.run_id))
            self.result.verification[spec_id] = report
            step.details[str(spec_id)] = f"{len(report.checks)} checks, {report.failures() or 'all hold'}"
        failures = [report.failures() for report in self.result.verification.values() if not report.success]
        if failures:
            raise VerificationFailedError("; ".join(failures))

    def _compare(self, java_table: Any, spec_id: int, parent: int, snapshot_id: int) -> VerificationReport:
        if not is_trim(java_table, snapshot_id):
            return compare_snapshots(self._at(parent), self._readable(snapshot_id))
        rule = requested_rule(self._at(parent), self.request)
        self._record_bounds(rule, parent, snapshot_id)
        return compare_trimmed(self._at(parent), self._readable(snapshot_id), spec_id, rule)

    def _record_bounds(self, rule: TrimRule, *snapshot_ids: int) -> None:
        """Sees to it that the first columns whose bounds a trim leaves are recorded, to compare them one by one."""
        schema = self._at(snapshot_ids[0]).info.metadata.schema()
        kept = [field_id for field_id in sorted(rule.with_bounds()) if field_id in schema.field_ids][:COMPARED_COLUMNS]
        self.queried |= {name for field_id in kept if (name := schema.find_column_name(field_id))}
        for snapshot_id in snapshot_ids:
            known = self._recorded.get(snapshot_id)
            if known is not None and not known.info.recorded_field_ids.issuperset(kept):
                del self._recorded[snapshot_id]

    def _readable(self, snapshot_id: int) -> PlanningMetadata:
        """Records our snapshot, which opens each of its manifests."""
        try:
            return self._at(snapshot_id)
        except NotMeasurableError as error:
            raise VerificationFailedError(
                f"our snapshot {snapshot_id} cannot be read: {error}; roll back, and do not remove orphan files before"
            ) from error

    def _measure_again(self, step: Step) -> None:
        """Compares the snapshot before our first commit with our last one: later commits are not ours to claim."""
        result, java_table = self.result, self._java_table()
        ours = list(result.snapshots.items())
        first_parent = parent_id(java_table, ours[0][1])
        if first_parent is None:
            raise WorkFailedError("our first snapshot has no parent")
        result.before = predicted = self._at(first_parent)
        target, sort_by = target_of(result.before, self.request), self.request.sort_by
        for spec_id, snapshot_id in ours:
            if is_trim(java_table, snapshot_id):
                predicted = predict_trim(
                    predicted, spec_id, target, sort_by, requested_rule(result.before, self.request)
                ).metadata
            else:
                predicted = predict_rewrite_manifests(predicted, spec_id, target, sort_by).metadata
        result.predicted, result.after = predicted, self._at(ours[-1][1])
        if (current := current_snapshot_id(java_table)) != ours[-1][1]:
            step.details["later_commits"] = f"the current snapshot is {current}: others have committed since"

    def _conclude(self) -> None:
        result = self.result
        if result.dry_run:
            result.state = "planned" if result.commands else "no_op"
        else:
            result.state = "done" if result.snapshots or result.property_changes else "no_op"
        if result.state == "no_op":
            result.reason = "; ".join(
                step.reason for step in result.log.steps if step.reason and step.reason != "not requested"
            )
        result.rollback = self._rollback_command()

    def _rollback_command(self) -> str | None:
        """Back to before our commits, as long as nobody has committed after them."""
        java_table = self._java_table()
        ours, target = set(self.result.snapshots.values()), current_snapshot_id(java_table)
        if target not in ours:
            return None
        while target in ours and target is not None:
            target = parent_id(java_table, target)
        return commands.rollback(self.table, target) if target is not None else None


def _operation_check(snapshot: Any, run_id: str) -> Check:
    observed = f"{snapshot.operation()} by run {snapshot.summary().get(RUN_ID_PROPERTY)!r}"
    expected = f"replace by run {run_id!r}"
    return Check(name="our snapshot's operation", success=observed == expected, observed=observed, expected=expected)
