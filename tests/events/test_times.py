"""Times and durations are read as Core writes them, and nothing else is (Core §4, ruling E4)."""

import re
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from events.times import (
    DATE_TIME_PATTERN,
    DURATION_PATTERN,
    format_date_time,
    parse_date_time,
    parse_duration_s,
)

OFFSETS = st.integers(-14 * 60, 14 * 60).map(lambda minutes: timezone(timedelta(minutes=minutes)))


@given(st.datetimes(datetime(1000, 1, 3), datetime(9999, 12, 30), timezones=OFFSETS))
def test_every_moment_is_read_back_whatever_its_offset(moment: datetime) -> None:
    assert parse_date_time(moment.isoformat()) == moment
    written = format_date_time(moment)
    assert written.endswith("Z")
    assert parse_date_time(written) == moment.replace(microsecond=moment.microsecond // 1000 * 1000)


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2026-11-30t12:00:00z", datetime(2026, 11, 30, 12, tzinfo=UTC)),
        ("2026-11-30T12:00:00.5-05:30", datetime(2026, 11, 30, 17, 30, 0, 500_000, tzinfo=UTC)),
        ("2026-11-30T12:00:00.123456789Z", datetime(2026, 11, 30, 12, 0, 0, 123_456, tzinfo=UTC)),
        ("2016-12-31T23:59:60Z", datetime(2016, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC)),
        ("2024-02-29T00:00:00+00:00", datetime(2024, 2, 29, tzinfo=UTC)),
    ],
)
def test_rfc_3339_is_read_in_all_its_forms(text: str, moment: datetime) -> None:
    assert parse_date_time(text) == moment


NO_TIMES = [
    "",
    "2026-11-30",
    "2026-11-30T12:00:00",
    "2026-11-30T12:00:00.Z",
    "2026-11-30 12:00:00Z",
    "2026-11-30T12:00:00+0100",
    "2026-11-30T12:00:00+24:00",
    "2026-11-30T24:00:00Z",
    "2026-11-30T12:60:00Z",
    "2026-11-30T12:00:61Z",
    "2026-13-01T12:00:00Z",
    "20261130T120000Z",
    "2026-W48-1T12:00:00Z",
    "2026-11-30T12:00:00Z\n",
    " 2026-11-30T12:00:00Z",
    "٢٠٢٦-11-30T12:00:00Z",
    "2026-11-30T12:00:00.1234567890Z",
]


@pytest.mark.parametrize("text", NO_TIMES)
def test_what_is_no_time_with_an_offset_is_refused_by_pattern_and_parser(text: str) -> None:
    assert not re.search(DATE_TIME_PATTERN, text)
    with pytest.raises(ValueError, match="RFC 3339"):
        parse_date_time(text)


@pytest.mark.parametrize(
    "text",
    [
        "2026-02-30T00:00:00Z",
        "2025-02-29T00:00:00Z",
        "0000-01-01T00:00:00Z",
        "0001-01-01T00:00:00+10:00",
        "9999-12-31T23:59:59-10:00",
    ],
)
def test_days_that_do_not_exist_are_value_errors_and_nothing_worse(text: str) -> None:
    with pytest.raises(ValueError):
        parse_date_time(text)


@given(st.text(max_size=30))
def test_any_text_is_a_time_or_a_value_error(text: str) -> None:
    for reader in (parse_date_time, parse_duration_s):
        try:
            reader(text)
        except ValueError:
            continue
        assert text.isascii()


def test_a_time_without_an_offset_is_not_written() -> None:
    with pytest.raises(ValueError, match="offset"):
        format_date_time(datetime(2026, 11, 30))


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("PT0S", 0),
        ("PT90S", 90),
        ("PT1.5S", 1.5),
        ("PT10M", 600),
        ("PT1H30M", 5400),
        ("P1D", 86_400),
        ("P1DT1S", 86_401),
    ],
)
def test_durations_are_seconds(text: str, seconds: float) -> None:
    assert re.search(DURATION_PATTERN, text)
    assert parse_duration_s(text) == seconds


@pytest.mark.parametrize(
    "text", ["", "P", "PT", "P1Y", "P1M", "P1W", "PT-1S", "1H", "PT1", "P1DT", "PT1S\n", "PT٣S", "pt1s"]
)
def test_what_is_no_duration_is_refused(text: str) -> None:
    assert not re.search(DURATION_PATTERN, text)
    with pytest.raises(ValueError):
        parse_duration_s(text)


def test_a_duration_beyond_all_bounds_is_a_value_error() -> None:
    with pytest.raises(ValueError):
        parse_duration_s("P1000000000D")
    with pytest.raises(ValueError):
        parse_duration_s("P" + "9" * 5000 + "D")
    with pytest.raises(ValueError):
        parse_duration_s("PT" + "9" * 4000 + "S")
