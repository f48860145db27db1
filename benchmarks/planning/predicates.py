"""A hundred different predicates, random but repeatable: most on columns that the table is not partitioned by."""

from __future__ import annotations

import datetime as dt
import random
from collections.abc import Callable
from dataclasses import dataclass

from benchmarks.planning.manifests import DAYS, DOUBLE_DOMAIN, LONG_DOMAIN

COLUMNS = ("l00", "l03", "d01", "s01", "t02", "ts")
"""All columns of the predicates; files cover up to 30 %, 0.03 %, 3 %, 3 % and 0.3 % of the first five's domains."""
FEWER_COLUMNS = ("l00", "d01", "s01", "ts")
START = dt.datetime(2024, 1, 1)


@dataclass(frozen=True)
class BenchmarkPredicate:
    """A WHERE clause, and whether its conditions on the partition's column leave manifests unopened."""

    where: str
    partitioned: bool


def predicates(count: int = 100, columns: tuple[str, ...] = COLUMNS, seed: int = 4) -> list[BenchmarkPredicate]:
    """Make different predicates, one in five with a range of days."""
    rng = random.Random(seed)  # noqa: S311
    others = [column for column in columns if column != "ts"]
    found: dict[str, BenchmarkPredicate] = {}
    while len(found) < count:
        partitioned = len(found) % 5 == 4
        conditions = [_condition(rng, column) for column in rng.sample(others, rng.choice((1, 1, 2)))]
        where = rng.choice((" AND ", " AND ", " OR ")).join(conditions)
        if partitioned:
            where = f"{_days(rng)} AND ({where})" if rng.random() < 0.5 else _days(rng)
        found.setdefault(where, BenchmarkPredicate(where, partitioned))
    return list(found.values())


def _condition(rng: random.Random, column: str) -> str:
    if rng.random() < 0.03:
        return f"{column} IS NULL"
    literal = _LITERALS[column[0]]
    share = rng.random()
    low, high = literal(share), literal(min(1.0, share + 10 ** rng.uniform(-4, -0.7)))
    forms = [
        f"{column} BETWEEN {low} AND {high}",
        f"{column} = {low}",
        f"{column} > {literal(1 - share**4)}",
        f"{column} <= {literal(share**4)}",
        f"{column} IN ({low}, {high}, {literal(rng.random())})",
        f"{column} != {low}",
    ]
    if column[0] == "s":
        forms += [f"{column} LIKE '{_letters(share)[: rng.choice((1, 2, 3))]}%'"] * 2
    return rng.choices(forms, [6, 6, 3, 3, 4, 1, 6, 6][: len(forms)])[0]


def _days(rng: random.Random) -> str:
    start = rng.randrange(DAYS)
    end = start + rng.choice((1, 1, 7, 30))
    return f"ts >= {_timestamp(start / DAYS)} AND ts < {_timestamp(end / DAYS)}"


def _letters(share: float) -> str:
    head = int(share * (26**4 - 1))
    return "".join(chr(ord("a") + head // 26**power % 26) for power in (3, 2, 1, 0))


def _timestamp(share: float) -> str:
    return f"TIMESTAMP_NTZ '{START + dt.timedelta(days=share * DAYS):%Y-%m-%d %H:%M:%S}'"


_LITERALS: dict[str, Callable[[float], str]] = {
    "l": lambda share: str(int(share * LONG_DOMAIN)),
    "d": lambda share: f"{share * DOUBLE_DOMAIN:.3f}D",
    "s": lambda share: f"'{_letters(share)}mmmm'",
    "t": _timestamp,
}
