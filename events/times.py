"""RFC 3339 date-times and ISO 8601 durations as Core writes them (Core §2, §4).

Times stay text in documents; these functions read them where they are used.
"""

import re
from datetime import UTC, datetime, timedelta

DATE_TIME_PATTERN = (
    r"^\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])[Tt]([01]\d|2[0-3]):[0-5]\d:([0-5]\d|60)(\.\d{1,9})?"
    r"([Zz]|[+-]([01]\d|2[0-3]):[0-5]\d)$"
)
DURATION_PATTERN = r"^P(?!$)(\d+D)?(T(?=\d)(\d+H)?(\d+M)?(\d+(\.\d+)?S)?)?$"

_DATE_TIME = re.compile(DATE_TIME_PATTERN)
_DURATION = re.compile(r"^P(?!$)(?:(\d+)D)?(?:T(?=\d)(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d+)?)S)?)?$")


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
        ValueError: not such a duration.
    """
    match = _DURATION.match(text)
    if match is None:
        raise ValueError(f"not an ISO 8601 duration: {text!r}")
    days, hours, minutes, seconds = match.groups()
    return timedelta(
        days=int(days or 0), hours=int(hours or 0), minutes=int(minutes or 0), seconds=float(seconds or 0)
    ).total_seconds()
