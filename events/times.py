"""RFC 3339 date-times and ISO 8601 durations as Core writes them (Core §2, §4).

Times stay text in documents; these functions read them where they are used.
"""

import re
from datetime import UTC, datetime, timedelta

# Digits are spelled out and the end is guarded: in Python `\d` would take the digits of any script, and `$` a
# newline after the text. Both patterns are ECMAScript too.
DATE_TIME_PATTERN = (
    r"^[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])"
    r"[Tt]([01][0-9]|2[0-3]):[0-5][0-9]:([0-5][0-9]|60)(\.[0-9]{1,9})?"
    r"([Zz]|[+-]([01][0-9]|2[0-3]):[0-5][0-9])$(?!\n)"
)
DURATION_PATTERN = (
    r"^P(?!$)(?:([0-9]+)D)?"
    r"(?:T(?=[0-9])(?:([0-9]+)H)?(?:([0-9]+)M)?(?:([0-9]+(?:\.[0-9]+)?)S)?)?$(?!\n)"
)

_DATE_TIME = re.compile(DATE_TIME_PATTERN)
_DURATION = re.compile(DURATION_PATTERN)


def parse_date_time(text: str) -> datetime:
    """An RFC 3339 date-time with offset as an aware `datetime` in UTC.

    A leap second is read as the last microsecond of its minute.

    Raises:
        ValueError: not RFC 3339, without an offset, a day that does not exist, or (in UTC) no year from
            1 to 9999.
    """
    if not _DATE_TIME.match(text):
        raise ValueError(f"not an RFC 3339 date-time with offset: {text!r}")
    normal = text.upper()
    leap = normal[17:19] == "60"
    if leap:
        normal = normal[:17] + "59" + normal[19:]
    try:
        moment = datetime.fromisoformat(normal).astimezone(UTC)
    except OverflowError:
        raise ValueError(f"outside the years 1 to 9999 in UTC: {text!r}") from None
    return moment.replace(microsecond=999_999) if leap else moment


def format_date_time(moment: datetime) -> str:
    """`moment` (aware) as RFC 3339 in UTC with milliseconds, ending in `Z`."""
    if moment.tzinfo is None:
        raise ValueError("a date-time without an offset cannot be written")
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def parse_duration_s(text: str) -> float:
    """An ISO 8601 duration of days, hours, minutes and seconds, in seconds.

    Raises:
        ValueError: not such a duration, or longer than 999,999,999 days.
    """
    match = _DURATION.match(text)
    if match is None:
        raise ValueError(f"not an ISO 8601 duration: {text!r}")
    days, hours, minutes, seconds = match.groups()
    try:
        span = timedelta(
            days=int(days or 0), hours=int(hours or 0), minutes=int(minutes or 0), seconds=float(seconds or 0)
        )
    except OverflowError:
        raise ValueError("a duration of more than 999,999,999 days") from None
    return span.total_seconds()
