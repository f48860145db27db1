"""Folding the constant parts of a Spark SQL predicate: dates, timestamps, intervals, casts of literals.

The values are Python's: ``int``, ``Decimal`` and ``float`` for numbers, ``date``, an aware ``datetime`` for
Spark's TIMESTAMP (in UTC), a naive one for TIMESTAMP_NTZ, ``None`` for NULL.
"""

from __future__ import annotations

import calendar
import datetime as dt
import math
import operator
import re
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Context, Decimal, InvalidOperation
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from sqlglot import exp

from planning_health.errors import InputError


class NotConstantError(Exception):
    """The expression is no constant, or one that this module does not fold."""


@dataclass(frozen=True, slots=True)
class Interval:
    """A length of time: whole months, and the rest in microseconds."""

    months: int = 0
    micros: int = 0

    def __neg__(self) -> Interval:
        return Interval(-self.months, -self.micros)

    def __add__(self, other: Interval) -> Interval:
        return Interval(self.months + other.months, self.micros + other.micros)


@dataclass(frozen=True)
class Clock:
    """What "now" and "here" mean to a query.

    Attributes:
        now: the current instant, aware.
        zone: the session time zone.
    """

    now: dt.datetime
    zone: ZoneInfo

    @classmethod
    def of(cls, zone: str = "UTC", now: dt.datetime | None = None) -> Clock:
        """Make a clock; without an instant it is the current one.

        Raises:
            InputError: an unknown time zone, or an instant without one.
        """
        if now is not None and now.tzinfo is None:
            raise InputError(f"the current time {now} has no time zone")
        return cls((now or dt.datetime.now(dt.UTC)).astimezone(dt.UTC), _zone(zone))

    @property
    def today(self) -> dt.date:
        """The current date in the session's zone."""
        return self.now.astimezone(self.zone).date()

    def instant(self, local: dt.datetime) -> dt.datetime:
        """Read a wall-clock time in the session's zone."""
        return local.replace(tzinfo=self.zone).astimezone(dt.UTC)

    def midnight(self, day: dt.date) -> dt.datetime:
        """The instant at which a day begins in the session's zone."""
        return self.instant(dt.datetime.combine(day, dt.time()))

    def local(self, instant: dt.datetime) -> dt.datetime:
        """An instant's wall-clock time in the session's zone, naive."""
        return instant.astimezone(self.zone).replace(tzinfo=None)


def _zone(name: str) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise InputError(f"unknown time zone {name!r}: expected a name such as UTC or Europe/Berlin") from error


_DATE = r"\s*([+-]?\d{4,6})(?:-(\d{1,2})(?:-(\d{1,2}))?)?"
_DATE_TEXT = re.compile(_DATE + r"(?:[ T].*)?\s*")
_TIME = r"(\d{1,2}):(\d{1,2})(?::(\d{1,2})(?:\.(\d{1,9}))?)?"
_ZONE = r"\s*(Z|UTC|GMT|[+-]\d{1,2}(?::?\d{2})?|[A-Za-z]+/[A-Za-z_/]+)?"
_TIMESTAMP_TEXT = re.compile(rf"{_DATE}(?:[ T]{_TIME}{_ZONE})?\s*")


def parse_date(text: str) -> dt.date:
    """Read a date as Spark casts text: ``2024``, ``2024-02``, ``2024-2-3``, a time behind it ignored.

    Raises:
        InputError: the text is no date.
        OverflowError: a date beyond the years 1 to 9999, which Spark reads and Python does not.
    """
    match = _DATE_TEXT.fullmatch(text)
    try:
        if match:
            year, month, day = int(match[1]), int(match[2] or 1), int(match[3] or 1)
            return dt.date(_checked_year(year, month, day), month, day)
    except ValueError:
        pass
    raise InputError(f"{text!r} is not a date: expected the form 2024-01-31")


def _checked_year(year: int, month: int, day: int) -> int:
    """Return the year of a date; OverflowError where it is one only beyond Python's years, else ValueError."""
    if not dt.MINYEAR <= year <= dt.MAXYEAR:
        dt.date(2000 + year % 400, month, day)  # the calendar repeats after 400 years
        raise OverflowError(f"year {year}")
    return year


def parse_timestamp(text: str, clock: Clock, *, zoned: bool) -> dt.datetime:
    """Read a timestamp as Spark casts text.

    Args:
        text: a date with or without a time and a zone.
        clock: gives the zone of a text without one.
        zoned: the result is an instant (TIMESTAMP); otherwise a wall-clock time (TIMESTAMP_NTZ).

    Raises:
        InputError: the text is no timestamp.
        OverflowError: an instant beyond the years 1 to 9999, which Spark reads and Python does not.
    """
    match = _TIMESTAMP_TEXT.fullmatch(text)
    if not match:
        raise InputError(f"{text!r} is not a timestamp: expected the form 2024-01-31 10:00:00")
    try:
        year, month, day = int(match[1]), int(match[2] or 1), int(match[3] or 1)
        hour, minute, second = (int(match[i] or 0) for i in (4, 5, 6))
        fraction = int((match[7] or "").ljust(6, "0")[:6])
        local = dt.datetime(_checked_year(year, month, day), month, day, hour, minute, second, fraction)
    except ValueError as error:
        raise InputError(f"{text!r} is not a timestamp: {error}") from error
    if not zoned:
        return local
    return local.replace(tzinfo=_text_zone(match[8])).astimezone(dt.UTC) if match[8] else clock.instant(local)


def _text_zone(text: str) -> dt.tzinfo:
    if text in ("Z", "UTC", "GMT"):
        return dt.UTC
    if text[0] not in "+-":
        return _zone(text)
    digits = text[1:].replace(":", "")
    hours, minutes = (int(digits), 0) if len(digits) <= 2 else (int(digits[:-2]), int(digits[-2:]))
    offset = dt.timedelta(hours=hours, minutes=minutes)
    return dt.timezone(-offset if text[0] == "-" else offset)


def add_interval(value: dt.date | dt.datetime, interval: Interval) -> dt.date | dt.datetime:
    """Add an interval; months keep the day of the month where the target month has it."""
    if interval.months:
        months = value.year * 12 + value.month - 1 + interval.months
        year, month = divmod(months, 12)
        if not dt.MINYEAR <= year <= dt.MAXYEAR:
            raise OverflowError(f"year {year}")
        day = min(value.day, calendar.monthrange(year, month + 1)[1])
        value = value.replace(year=year, month=month + 1, day=day)
    return value + dt.timedelta(microseconds=interval.micros)


_INT = 2**31
_LONG = 2**63
_MOST_DIGITS = 38
_MOST_MONTHS = 70_000_000
"""Beyond this many months a date leaves Spark's range of 32-bit days."""


def _as_number(value: Any) -> Any:
    """Bring the operand of a sign to a number: Spark reads a text as a double."""
    if isinstance(value, str):
        return float(value)
    if isinstance(value, bool):
        raise TypeError("a sign before a boolean")
    return value


def _as_int(value: Any) -> int:
    """Bring a function's argument to Spark's INT, as its implicit cast does."""
    number = int(value.strip()) if isinstance(value, str) else value
    if isinstance(number, bool) or not isinstance(number, int) or not -_INT <= number < _INT:
        raise ValueError(f"{value!r} is no INT")
    return number


def _as_long(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not -_LONG <= value < _LONG:
        raise ValueError(f"{value!r} is no BIGINT")
    return value


def _make_date(_: ConstantFolder, *parts: Any) -> dt.date:
    year, month, day = (_as_int(part) for part in parts)
    return dt.date(_checked_year(year, month, day), month, day)


def compare_constants(left: Any, right: Any, clock: Clock) -> int:
    """Compare two folded constants, neither NULL, as Spark does; NaN equals itself and is above all numbers.

    Returns:
        Negative, zero or positive, as left is below, equal to or above right.

    Raises:
        InputError: Spark does not compare the two types, or a text is no value of the other side's type.
        NotConstantError: intervals, whose comparison is not folded.
    """
    if isinstance(left, Interval) or isinstance(right, Interval):
        raise NotConstantError("a comparison of intervals")
    try:
        a, b = _read_as(left, right, clock), _read_as(right, left, clock)
        if isinstance(a, bool) is not isinstance(b, bool):
            raise TypeError("a boolean and something else")
        if isinstance(a, float) or isinstance(b, float):
            a, b = _float_key(a), _float_key(b)
        return int(a > b) - int(a < b)
    except (TypeError, ValueError) as error:
        raise InputError(f"{left!r} cannot be compared with {right!r}") from error


def _float_key(value: Any) -> tuple[bool, float]:
    number = float(value)
    return (True, 0.0) if math.isnan(number) else (False, number)


def _read_as(value: Any, other: Any, clock: Clock) -> Any:
    """Bring a value to the common type that Spark compares it and the other in."""
    if isinstance(value, str):
        return _read_text_as(value, other, clock)
    if isinstance(value, dt.date) and isinstance(other, dt.datetime):
        zoned = other.tzinfo is not None
        if not isinstance(value, dt.datetime):
            return clock.midnight(value) if zoned else dt.datetime.combine(value, dt.time())
        return clock.instant(value) if zoned and value.tzinfo is None else value
    return value


def _read_text_as(text: str, other: Any, clock: Clock) -> Any:
    match other:
        case bool():
            return parse_boolean(text)
        case int():
            return int(text.strip())
        case float() | Decimal():
            return float(text)
        case bytes():
            return text.encode()
        case dt.datetime():
            return parse_timestamp(text, clock, zoned=other.tzinfo is not None)
        case dt.date():
            return parse_date(text)
    return text


class ConstantFolder:
    """Folds constant SQL expressions against one clock."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    def fold(self, node: exp.Expression) -> Any:
        """Return the constant's value.

        Raises:
            NotConstantError: there is a column or a function that is not folded.
            InputError: a text does not have the form that its cast needs.
        """
        handler = _HANDLERS.get(type(node))
        if handler is None:
            raise NotConstantError(node.sql(dialect="spark"))
        try:
            return handler(self, node)
        except RecursionError:
            raise
        except OverflowError as error:  # Spark's dates and times reach further than Python's
            raise NotConstantError(str(error)) from error
        except (ArithmeticError, ValueError, TypeError, AttributeError) as error:
            raise InputError(f"{node.sql(dialect='spark')} cannot be evaluated") from error

    def _literal(self, node: exp.Literal) -> Any:
        if node.is_string:
            return str(node.this)
        text = str(node.this).lower()
        if "e" in text:
            return float(text)
        if len(re.sub(r"\D", "", text).lstrip("0")) > _MOST_DIGITS:
            raise InputError(f"a number of {len(text)} digits: Spark's decimals have at most {_MOST_DIGITS}")
        return Decimal(text) if "." in text else int(text)

    def _constant(self, node: exp.Boolean) -> Any:
        return bool(node.this)

    def _null(self, _: exp.Null) -> Any:
        return None

    def _inner(self, node: exp.Paren) -> Any:
        return self.fold(node.this)

    def _negative(self, node: exp.Neg) -> Any:
        value = _as_number(self.fold(node.this))
        return None if value is None else -value

    def _hex(self, node: exp.HexString) -> Any:
        return bytes.fromhex(str(node.this))

    def _raw(self, node: exp.RawString) -> Any:
        return str(node.this)

    def _today(self, _: exp.Expression) -> Any:
        return self._clock.today

    def _now(self, _: exp.Expression) -> Any:
        return self._clock.now

    def _local_now(self, _: exp.Expression) -> Any:
        return self._clock.local(self._clock.now)

    def _interval(self, node: exp.Interval) -> Any:
        unit = node.args.get("unit")
        if not isinstance(unit, exp.Var) or node.this is None:
            raise NotConstantError(node.sql(dialect="spark"))
        return _interval(self.fold(node.this), unit.name)

    def _arithmetic(self, node: exp.Binary) -> Any:
        left, right = self.fold(node.this), self.fold(node.expression)
        if left is None or right is None:
            return None
        minus = isinstance(node, exp.Sub)
        if isinstance(left, dt.date) and minus | isinstance(node, exp.Add):
            return self._moved(left, right, minus=minus)
        if isinstance(right, dt.date) and isinstance(node, exp.Add):
            return self._moved(right, left, minus=False)
        if isinstance(left, Interval) and isinstance(right, Interval):
            return left + (-right if minus else right)
        return _number_operation(node, left, right)

    def _moved(self, start: dt.date, by: Any, *, minus: bool) -> Any:
        if isinstance(by, int) and not isinstance(start, dt.datetime):
            by = Interval(micros=_as_int(by) * 86_400_000_000)
        if not isinstance(by, Interval):
            raise NotConstantError("a difference of dates")
        by = -by if minus else by
        if isinstance(start, dt.datetime) and start.tzinfo is not None and by.months:
            return self._clock.instant(add_interval(self._clock.local(start), by))  # type: ignore[arg-type]
        whole_days = by.micros % 86_400_000_000 == 0
        if not isinstance(start, dt.datetime) and not whole_days:
            return add_interval(self._clock.midnight(start), by)
        return add_interval(start, by)

    def _add_days(self, node: exp.TsOrDsAdd) -> Any:
        start, days = self._as_date(self.fold(node.this)), self.fold(node.expression)
        unit = node.args.get("unit")
        if unit is not None and unit.name.upper() != "DAY":
            raise NotConstantError(node.sql(dialect="spark"))
        return None if start is None or days is None else start + dt.timedelta(days=_as_int(days))

    def _add_months(self, node: exp.AddMonths) -> Any:
        start, months = self._as_date(self.fold(node.this)), self.fold(node.expression)
        if start is None or months is None:
            return None
        if abs(_as_int(months)) > _MOST_MONTHS:
            raise InputError(f"{node.sql(dialect='spark')} is no date that Spark can hold")
        return add_interval(start, Interval(months=_as_int(months)))

    def _to_date(self, node: exp.TsOrDsToDate) -> Any:
        if node.args.get("format") is not None:
            raise NotConstantError(node.sql(dialect="spark"))
        return self._as_date(self.fold(node.this))

    def _last_day(self, node: exp.LastDay) -> Any:
        day = self._as_date(self.fold(node.this))
        return None if day is None else day.replace(day=calendar.monthrange(day.year, day.month)[1])

    def _as_date(self, value: Any) -> dt.date | None:
        match value:
            case None:
                return None
            case str():
                return parse_date(value)
            case dt.datetime():
                return (self._clock.local(value) if value.tzinfo else value).date()
            case dt.date():
                return value
        raise NotConstantError(f"{value!r} as a date")

    def _as_timestamp(self, value: Any, *, zoned: bool) -> dt.datetime | None:
        match value:
            case None:
                return None
            case str():
                return parse_timestamp(value, self._clock, zoned=zoned)
            case dt.datetime():
                local = value if value.tzinfo is None else self._clock.local(value)
                return (value if value.tzinfo else self._clock.instant(value)) if zoned else local
            case dt.date():
                return self._clock.midnight(value) if zoned else dt.datetime.combine(value, dt.time())
        raise NotConstantError(f"{value!r} as a timestamp")

    def _truncate(self, node: exp.DateTrunc) -> Any:
        value = self.fold(node.this)
        unit = node.args["unit"].name.upper()
        if isinstance(node, exp.DateTrunc):
            day = self._as_date(value)
            return None if day is None else _start_of(dt.datetime.combine(day, dt.time()), unit).date()
        instant = self._as_timestamp(value, zoned=True)
        return None if instant is None else self._clock.instant(_start_of(self._clock.local(instant), unit))

    def _concat(self, node: exp.Concat) -> Any:
        parts = [self.fold(part) for part in node.expressions]
        return None if None in parts else "".join(_text(part) for part in parts)

    def _pipe(self, node: exp.DPipe) -> Any:
        parts = [self.fold(node.this), self.fold(node.expression)]
        return None if None in parts else "".join(_text(part) for part in parts)

    def _function(self, node: exp.Anonymous) -> Any:
        function = _FUNCTIONS.get(str(node.this).lower())
        if function is None:
            raise NotConstantError(node.sql(dialect="spark"))
        arguments = [self.fold(argument) for argument in node.expressions]
        return None if None in arguments else function(self, *arguments)

    def _text_function(self, node: exp.Func) -> Any:
        value = self.fold(node.this)
        if value is None:
            return None
        return _text(value).lower() if isinstance(node, exp.Lower) else _text(value).upper()

    def _absolute(self, node: exp.Abs) -> Any:
        value = _as_number(self.fold(node.this))
        return None if value is None else abs(value)

    def _cast(self, node: exp.Cast) -> Any:
        value = self.fold(node.this)
        target = node.to
        if value is None:
            return None
        try:
            return self._cast_value(value, target)
        except (ValueError, InvalidOperation, OverflowError, InputError) as error:
            if node.args.get("safe"):  # TRY_CAST; in sqlglot's Spark a plain CAST is a TryCast, too
                return None
            if isinstance(error, InputError) or (isinstance(error, OverflowError) and target.this in _TEMPORAL):
                raise
            raise InputError(f"{value!r} cannot be cast to {target.sql(dialect='spark')}") from error

    def _cast_value(self, value: Any, target: exp.DataType) -> Any:
        kind = target.this
        if kind in (exp.DType.DATE, exp.DType.DATE32):
            return self._as_date(value)
        if kind in _ZONED:
            return self._as_timestamp(value, zoned=True)
        if kind is exp.DType.TIMESTAMPNTZ:
            return self._as_timestamp(value, zoned=False)
        if kind in exp.DataType.TEXT_TYPES:
            return _text(value)
        if kind is exp.DType.DECIMAL:
            return _decimal(value, target)
        if isinstance(value, dt.date | Interval | bytes):
            raise NotConstantError(f"{value!r} as {target.sql(dialect='spark')}")
        return _simple_cast(value, kind)


_TEMPORAL = exp.DataType.TEMPORAL_TYPES
_ZONED = (exp.DType.TIMESTAMP, exp.DType.TIMESTAMPTZ, exp.DType.TIMESTAMPLTZ)


_BITS = {exp.DType.TINYINT: 8, exp.DType.SMALLINT: 16, exp.DType.INT: 32, exp.DType.BIGINT: 64}


def _whole(number: int, kind: Any) -> int:
    half = 1 << (_BITS.get(kind, 64) - 1)
    if not -half <= number < half:
        raise OverflowError(f"{number} is no {kind}")
    return number


def _simple_cast(value: Any, kind: Any) -> Any:
    if kind in exp.DataType.INTEGER_TYPES:
        return _whole(int(value.strip()) if isinstance(value, str) else int(value), kind)
    if kind is exp.DType.FLOAT or kind is exp.DType.DOUBLE:
        return float(value)
    if kind is exp.DType.BOOLEAN:
        return parse_boolean(value) if isinstance(value, str) else bool(value)
    if kind is exp.DType.BINARY and isinstance(value, str):
        return value.encode()
    raise NotConstantError(str(kind))


def parse_boolean(text: str) -> bool:
    """Read a boolean as Spark casts text.

    Raises:
        ValueError: the text is none.
    """
    word = text.strip().lower()
    if word in ("true", "t", "yes", "y", "1"):
        return True
    if word in ("false", "f", "no", "n", "0"):
        return False
    raise ValueError(f"{text!r} is not a boolean")


def _decimal(value: Any, target: exp.DataType) -> Decimal:
    parameters = [int(str(parameter.this)) for parameter in target.expressions]
    precision = parameters[0] if parameters else 10
    scale = parameters[1] if len(parameters) > 1 else 0
    if not scale <= precision <= _MOST_DIGITS:
        raise ValueError(f"DECIMAL({precision}, {scale})")
    number = Decimal(value.strip()) if isinstance(value, str) else Decimal(str(value))
    # the context's precision makes it raise where the value has more digits than the type
    return number.quantize(Decimal(1).scaleb(-scale), rounding="ROUND_HALF_UP", context=Context(prec=precision))


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, int | Decimal) and not isinstance(value, bool):
        return str(value)
    if isinstance(value, dt.date) and not isinstance(value, dt.datetime):
        return value.isoformat()
    raise NotConstantError(f"{value!r} as text")


_UNIT_MICROS = {
    "MICROSECOND": 1,
    "MILLISECOND": 1000,
    "SECOND": 1_000_000,
    "MINUTE": 60_000_000,
    "HOUR": 3_600_000_000,
    "DAY": 86_400_000_000,
    "WEEK": 7 * 86_400_000_000,
}
_UNIT_MONTHS = {"MONTH": 1, "QUARTER": 3, "YEAR": 12}


def _interval(amount: Any, unit: str) -> Interval:
    name = unit.upper().rstrip("S")
    try:
        number = Decimal(str(amount))
    except InvalidOperation as error:
        raise NotConstantError(f"interval {amount} {unit}") from error
    if name in _UNIT_MONTHS:
        return Interval(months=int(number) * _UNIT_MONTHS[name])
    if name in _UNIT_MICROS:
        return Interval(micros=int(number * _UNIT_MICROS[name]))
    raise NotConstantError(f"interval {amount} {unit}")


def _start_of(local: dt.datetime, unit: str) -> dt.datetime:
    midnight = local.replace(hour=0, minute=0, second=0, microsecond=0)
    match unit:
        case "YEAR" | "YYYY" | "YY":
            return midnight.replace(month=1, day=1)
        case "QUARTER":
            return midnight.replace(month=(local.month - 1) // 3 * 3 + 1, day=1)
        case "MONTH" | "MM" | "MON":
            return midnight.replace(day=1)
        case "WEEK":
            return midnight - dt.timedelta(days=local.weekday())
        case "DAY" | "DD":
            return midnight
        case "HOUR":
            return local.replace(minute=0, second=0, microsecond=0)
        case "MINUTE":
            return local.replace(second=0, microsecond=0)
    raise NotConstantError(f"truncation to {unit}")


_NUMBER_OPERATIONS: dict[type, Callable[[Any, Any], Any]] = {
    exp.Add: operator.add,
    exp.Sub: operator.sub,
    exp.Mul: operator.mul,
    exp.Div: operator.truediv,
    exp.IntDiv: lambda a, b: _quotient(a, b),
    exp.Mod: lambda a, b: math.fmod(a, b) if isinstance(a, float) else a - b * _quotient(a, b),
}


def _quotient(a: Any, b: Any) -> int:
    """Divide and drop the fraction, as Spark's DIV does; the remainder then has the dividend's sign."""
    if isinstance(a, int) and isinstance(b, int):
        return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
    return math.trunc(Decimal(a) / Decimal(b))


def _number_operation(node: exp.Binary, left: Any, right: Any) -> Any:
    numbers = int | Decimal | float
    if isinstance(left, bool) or isinstance(right, bool):
        raise TypeError("arithmetic on booleans")
    if not isinstance(left, numbers) or not isinstance(right, numbers):
        raise NotConstantError(node.sql(dialect="spark"))
    if isinstance(left, float) != isinstance(right, float):
        left, right = float(left), float(right)
    try:
        return _NUMBER_OPERATIONS[type(node)](left, right)
    except (ZeroDivisionError, InvalidOperation, ValueError) as error:
        raise InputError(f"{node.sql(dialect='spark')} cannot be evaluated") from error


_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "now": lambda folder: folder._clock.now,
    "make_date": _make_date,
    "bigint": lambda _, value: int(value),
    "timestamp_seconds": lambda _, value: _EPOCH + dt.timedelta(seconds=float(value)),
    "timestamp_millis": lambda _, value: _EPOCH + dt.timedelta(milliseconds=_as_long(value)),
    "timestamp_micros": lambda _, value: _EPOCH + dt.timedelta(microseconds=_as_long(value)),
}

_HANDLERS: dict[type, Callable[[ConstantFolder, Any], Any]] = {
    exp.Literal: ConstantFolder._literal,
    exp.Boolean: ConstantFolder._constant,
    exp.Null: ConstantFolder._null,
    exp.Paren: ConstantFolder._inner,
    exp.Neg: ConstantFolder._negative,
    exp.HexString: ConstantFolder._hex,
    exp.RawString: ConstantFolder._raw,
    exp.CurrentDate: ConstantFolder._today,
    exp.CurrentTimestamp: ConstantFolder._now,
    exp.Localtimestamp: ConstantFolder._local_now,
    exp.Interval: ConstantFolder._interval,
    exp.TsOrDsAdd: ConstantFolder._add_days,
    exp.AddMonths: ConstantFolder._add_months,
    exp.TsOrDsToDate: ConstantFolder._to_date,
    exp.LastDay: ConstantFolder._last_day,
    exp.DateTrunc: ConstantFolder._truncate,
    exp.TimestampTrunc: ConstantFolder._truncate,
    exp.Concat: ConstantFolder._concat,
    exp.DPipe: ConstantFolder._pipe,
    exp.Anonymous: ConstantFolder._function,
    exp.Lower: ConstantFolder._text_function,
    exp.Upper: ConstantFolder._text_function,
    exp.Abs: ConstantFolder._absolute,
    exp.Cast: ConstantFolder._cast,
    exp.TryCast: ConstantFolder._cast,
    **dict.fromkeys((exp.Add, exp.Sub, exp.Mul, exp.Div, exp.IntDiv, exp.Mod), ConstantFolder._arithmetic),
}
