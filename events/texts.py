"""Text that documents hold: free text, which is data and never an instruction (Core §6.4; ruling D6), and
names, which are bounded.

Every text of a document is one of these, or has a pattern, or is one of a list of words; a test holds that.
"""

from typing import Annotated, Any, Final

from msgspec import Meta

UNTRUSTED: Final = "x-cookwala-untrusted"
"""The mark of free text in our JSON Schema."""

_FREE: Final[dict[str, Any]] = {UNTRUSTED: True}

UntrustedText = Annotated[str, Meta(max_length=4000, extra_json_schema=_FREE)]
"""Free text of a person or of another party."""
ShortText = Annotated[str, Meta(max_length=200, extra_json_schema=_FREE)]
"""Free text where the public schema allows 200 characters."""
ReasonText = Annotated[str, Meta(max_length=300, extra_json_schema=_FREE)]
"""Free text where the public schema allows 300 characters."""
DetailText = Annotated[str, Meta(max_length=500, extra_json_schema=_FREE)]
"""Free text where the public schema allows 500 characters."""

LangTag = Annotated[str, Meta(pattern=r"^[a-z]{2,3}(-[A-Za-z0-9]{2,8})*$(?!\n)")]
LangMap = Annotated[dict[LangTag, UntrustedText], Meta(extra_json_schema=_FREE)]
"""Free text per language (BCP 47)."""

Name = Annotated[str, Meta(max_length=512)]
"""An identifier, a code or an address whose form nobody prescribes."""
DATE_PATTERN: Final = r"^[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])$(?!\n)"
Date = Annotated[str, Meta(pattern=DATE_PATTERN)]
"""An RFC 3339 full-date."""

Id = Annotated[str, Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9._:-]{2,127}$(?!\n)")]
"""The id of a document of Core."""
GlobalRef = Annotated[
    str,
    Meta(
        pattern=r"^(https?://[^#\s]+#[A-Za-z0-9._:-]+|cw:[a-z0-9.-]+:[A-Za-z0-9._:-]+|[A-Za-z0-9._-]+)$(?!\n)",
        max_length=512,
    ),
]
"""A document in any catalogue."""
