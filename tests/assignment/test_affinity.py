"""Affinity routing: homes, rankings, their independence of order, and what membership changes move."""

from __future__ import annotations

import hashlib
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planning_health.assignment import (
    Ranking,
    TaskHints,
    default_assignment,
    home_share,
    membership_change,
    normalise_url,
    normalise_workers,
    owners,
    rank_workers,
    siphash13,
)
from planning_health.assignment.siphash import integer_bytes, string_bytes
from planning_health.errors import InputError


def workers(count: int) -> list[str]:
    return [f"http://worker-{i}" for i in range(count)]


def rank(hints: list[tuple[str, int]], urls: list[str]) -> list[tuple[str, int]]:
    return rank_workers(TaskHints.of([hints]), urls).of_task(0)


def slow_ranking(hints: list[tuple[str, int]], urls: list[str]) -> list[tuple[str, int]]:
    """The rules one pair at a time, as an independent check."""

    def hashed(*values: str | int) -> int:
        stream = b"".join(string_bytes(v) if isinstance(v, str) else integer_bytes(v) for v in values)
        return int(siphash13([stream])[0])

    weights: dict[str, int] = {}
    for key, weight in hints:
        weights[key] = max(weight, weights.get(key, 0))
    weights = {key: weight for key, weight in weights.items() if weight}
    names = sorted({normalise_url(url) for url in urls})
    scores = Counter(dict.fromkeys(names, 0))
    for key, weight in weights.items():
        scores[max(names, key=lambda url: hashed(key, url))] += weight
    key_set = hashed(*sorted(weights, key=str.encode))
    ordered = sorted(names, key=lambda url: (-scores[url], -hashed("affinity-score-tie", key_set, url), url))
    return [(url, scores[url]) for url in ordered] if weights else []


def test_order_of_two_weighted_files_on_five_workers() -> None:
    ranking = rank([("s3://bucket/a", 100), ("s3://bucket/b", 10)], workers(5))
    assert [int(url[len("http://worker-")]) for url, _ in ranking] == [0, 4, 1, 3, 2]


def test_zero_weights_are_dropped_and_repeated_keys_count_once() -> None:
    hints = TaskHints.of([[("a", 100), ("a", 20), ("b", 50), ("b", 50), ("zero", 0)]])
    scores = dict(rank_workers(hints, workers(3)).of_task(0))
    assert (scores["http://worker-0/"], scores["http://worker-1/"]) == (100, 50)
    assert (hints.objects(0), hints.bytes(0)) == (2, 150)


def test_the_largest_weight_of_a_repeated_key_counts_in_any_order() -> None:
    assert TaskHints.of([[("a", 20), ("a", 100), ("a", 50)]]).bytes(0) == 100


def test_a_leaving_worker_moves_exactly_its_own_files() -> None:
    keys = [f"s3://bucket/f-{i:05}.parquet" for i in range(10_000)]
    urls = normalise_workers(workers(10))
    before, after = owners(keys, urls), owners(keys, urls[:9])
    moved = before != after
    assert moved.sum() == 1002
    assert (moved == (before == 9)).all()


def test_a_worker_that_is_not_the_home_can_still_change_a_task_of_several_files() -> None:
    hints = [("f0", 3), ("f5", 2), ("f6", 2)]
    assert rank(hints, workers(3))[0] == ("http://worker-0/", 3)
    assert rank(hints, workers(2)) == [("http://worker-1/", 4), ("http://worker-0/", 3)]


def test_20_000_tasks_of_two_equal_files_are_spread_evenly() -> None:
    hints = TaskHints.of([[(f"s3://bucket/a-{t}", 1), (f"s3://bucket/b-{t}", 1)] for t in range(20_000)])
    ranking = rank_workers(hints, workers(10))
    counts = ranking.preferred_counts()
    assert sum(counts.values()) == 20_000
    assert all(1800 <= count <= 2200 for count in counts.values()), counts


def test_ties_broken_by_url_would_have_favoured_low_urls() -> None:
    """The same 20,000 tasks with the wrong tie rule, so that the test above is known to tell them apart."""
    hints = TaskHints.of([[(f"s3://bucket/a-{t}", 1), (f"s3://bucket/b-{t}", 1)] for t in range(20_000)])
    ranking = rank_workers(hints, workers(10))
    by_url = np.argmax(ranking.low, axis=1)  # the first worker of those with the largest score
    counts = np.bincount(by_url, minlength=10)
    assert (counts[0], counts[9]) == (3851, 211)


@settings(max_examples=50)
@given(
    st.lists(st.tuples(st.text(max_size=12), st.integers(0, 3)), max_size=6),
    st.lists(st.integers(0, 30).map("http://w{}".format), min_size=1, max_size=5),
)
def test_rankings_follow_the_rules_one_pair_at_a_time(hints: list[tuple[str, int]], urls: list[str]) -> None:
    assert rank(hints, urls) == slow_ranking(hints, urls)


@settings(max_examples=50)
@given(st.lists(st.tuples(st.text(max_size=9), st.integers(0, 2)), max_size=8), st.integers(1, 6), st.randoms())
def test_order_and_repetition_of_hints_and_workers_have_no_influence(hints, count: int, random) -> None:
    shuffled = hints + hints[:3]
    random.shuffle(shuffled)
    urls = workers(count) + workers(count)[:2]
    random.shuffle(urls)
    assert rank(hints, workers(count)) == rank(shuffled, urls)


@settings(max_examples=50)
@given(st.lists(st.text(max_size=12), min_size=1, max_size=30), st.integers(2, 8), st.data())
def test_no_file_moves_whose_owner_stays(keys: list[str], count: int, data) -> None:
    urls = normalise_workers(workers(count))
    gone = data.draw(st.integers(0, count - 1))
    rest = urls[:gone] + urls[gone + 1 :]
    for old, new in zip(owners(keys, urls), owners(keys, rest), strict=True):
        assert old == gone or urls[old] == rest[new]


def test_a_task_does_not_influence_another_tasks_ranking() -> None:
    tasks = [[(f"s3://b/{t}-{i}", 1 + i) for i in range(t % 5)] for t in range(50)]
    together = rank_workers(TaskHints.of(tasks), workers(7))
    assert [together.of_task(t) for t in range(50)] == [rank(hints, workers(7)) for hints in tasks]


def test_scores_are_exact_beyond_64_bits() -> None:
    largest = 2**64 - 1
    assert rank([("a", largest), ("b", largest), ("c", 1)], workers(1)) == [("http://worker-0/", 2 * largest + 1)]
    scores = dict(rank([(f"k{i}", largest - i) for i in range(20)], workers(2)))
    assert sum(scores.values()) == sum(largest - i for i in range(20))


def test_no_positive_hint_or_no_worker_defers() -> None:
    hints = TaskHints.of([[], [("zero", 0)], [("a", 1)]])
    ranking = rank_workers(hints, workers(2))
    assert [ranking.of_task(task) for task in range(2)] == [[], []]
    assert ranking.preferred().tolist()[:2] == [-1, -1]
    assert sum(ranking.preferred_counts().values()) == 1
    nobody = rank_workers(hints, [])
    assert (nobody.of_task(2), nobody.preferred().tolist(), nobody.preferred_counts()) == ([], [-1] * 3, {})


def test_a_weight_beyond_unsigned_64_bits_is_refused() -> None:
    with pytest.raises(InputError, match="weight -1 of 'a'"):
        TaskHints.of([[("a", -1)]])


@pytest.mark.parametrize(
    ("url", "normalised"),
    [
        ("http://worker-0", "http://worker-0/"),
        ("http://worker-0/", "http://worker-0/"),
        ("HTTP://Worker-0:80", "http://worker-0/"),
        ("https://worker-0:443/", "https://worker-0/"),
        ("http://worker-0:8080", "http://worker-0:8080/"),
        ("http://[::1]:9000", "http://[::1]:9000/"),
        ("http://worker-0/pool one", "http://worker-0/pool%20one"),
    ],
)
def test_worker_urls_are_normalised(url: str, normalised: str) -> None:
    assert normalise_url(url) == normalised


@pytest.mark.parametrize("url", ["", "worker-0", "worker-0:8080", "http://", "http://w:port"])
def test_a_worker_that_is_no_absolute_url_is_refused(url: str) -> None:
    with pytest.raises(InputError, match="expected an absolute URL"):
        normalise_url(url)


def _scan(files: int) -> tuple[TaskHints, Ranking]:
    groups = default_assignment([1] * files, 10).groups
    hints = TaskHints.of([[(f"s3://bucket/f-{unit:05}.parquet", 1) for unit in group] for group in groups])
    return hints, rank_workers(hints, workers(10))


@pytest.mark.parametrize(("files", "at_home"), [(10, 10), (20, 10), (100, 24), (1000, 152)])
def test_the_share_of_bytes_at_home_falls_with_files_per_task(files: int, at_home: int) -> None:
    share = home_share(*_scan(files))
    assert (share.at_home_bytes, share.total_bytes) == (at_home, files)
    assert share.fraction == at_home / files


def test_home_share_without_hints_or_workers_is_unknown_or_none_at_home() -> None:
    nothing = TaskHints.of([[]])
    assert home_share(nothing, rank_workers(nothing, workers(2))).fraction is None
    hints = TaskHints.of([[("a", 5)]])
    assert home_share(hints, rank_workers(hints, [])).at_home_bytes == 0


def test_membership_change_counts_what_leaves_its_home() -> None:
    hints, before = _scan(1000)
    after = rank_workers(hints, workers(9))
    leave = membership_change(hints, before, after)
    join = membership_change(hints, after, before)
    owned = int((owners(hints.keys, before.workers) == 9).sum())
    assert leave.worker == join.worker == "http://worker-9/"
    assert leave.moved_keys == join.moved_keys == leave.moved_bytes == owned
    assert leave.moved_tasks == join.moved_tasks
    assert leave.share == home_share(hints, after)
    assert leave.at_old_home.at_home_bytes <= leave.share.at_home_bytes


def test_membership_change_needs_exactly_one_difference() -> None:
    hints, before = _scan(10)
    with pytest.raises(InputError, match="exactly one"):
        membership_change(hints, before, rank_workers(hints, workers(8)))


def test_a_fixed_scan_keeps_its_homes_between_versions() -> None:
    """A change of the hash or of a tie rule would move every home silently; this digest would notice."""
    hints, ranking = _scan(1000)
    text = repr([ranking.of_task(task) for task in range(len(hints))])
    assert hashlib.sha256(text.encode()).hexdigest()[:16] == "630256a6a97c94bd"
