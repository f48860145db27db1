from __future__ import annotations

from planning_health.maintenance.answers import answered, by_urgency


def finding(rule: str, scope_key: str = "") -> dict[str, str]:
    return {"id": f"{rule}:{scope_key}" if scope_key else rule, "scope_key": scope_key}


def proposal(action: str, spec_id: int | None = None) -> dict[str, object]:
    return {"action": action, "spec_id": spec_id}


def test_a_rewrite_answers_the_findings_of_its_own_spec_and_of_the_whole_table() -> None:
    findings = [
        finding("wide_manifests", "1.day"),
        finding("too_many_manifests", "0"),
        finding("high_deleted_ratio"),
        finding("many_snapshots"),
    ]
    assert answered(proposal("rewrite_manifests", 0), findings) == ["too_many_manifests:0", "high_deleted_ratio"]


def test_the_first_proposal_answers_the_worst_finding() -> None:
    findings = [finding("dangling_deletes"), finding("wide_manifests", "0.day")]
    rewrite, dangling = proposal("rewrite_manifests", 0), proposal("recommend_remove_dangling_deletes")
    ordered = by_urgency([rewrite, proposal("set_properties"), dangling], findings)
    assert [item["action"] for item in ordered] == [dangling["action"], rewrite["action"], "set_properties"]
    assert [item["answers"] for item in ordered] == [["dangling_deletes"], ["wide_manifests:0.day"], []]


def test_rewrites_keep_their_order_since_each_is_predicted_on_top_of_the_ones_before() -> None:
    findings = [finding("wide_manifests", "1.day"), finding("many_snapshots")]
    given = [proposal("recommend_expire_snapshots"), proposal("rewrite_manifests", 0), proposal("rewrite_manifests", 1)]
    assert [item["spec_id"] for item in by_urgency(given, findings)] == [0, 1, None]
