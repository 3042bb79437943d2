"""Answers and problems (RFC 9457) as bytes; bodies as bytes, read by our own strict decoder."""

from collections.abc import Mapping
from typing import Any, Final, TypeVar

import msgspec
from litestar import Request, Response

from events.documents import DocumentError, read

PROBLEM: Final = "application/problem+json"
_JSON: Final = "application/json"

T = TypeVar("T")


class Problem(Exception):
    """An error answer.

    Attributes:
        status: the HTTP status.
        title: Core's refusal reason where one fits, else the error in a word.
        detail: what happened and what to do.
        more: further members of the problem document.
    """

    def __init__(self, status: int, title: str, detail: str, **more: Any) -> None:
        super().__init__(f"{status} {title}: {detail}")
        self.status = status
        self.title = title
        self.detail = detail
        self.more = more


def problem(error: Problem, headers: Mapping[str, str] | None = None) -> Response[bytes]:
    """A problem as an answer; `headers` are what the framework says beside it (a 405's Allow)."""
    document = {
        "type": "about:blank",
        "title": error.title,
        "status": error.status,
        "detail": error.detail,
        **error.more,
    }
    said = dict(headers or {})
    if error.status == 401:
        said["WWW-Authenticate"] = "Bearer"
    return Response(msgspec.json.encode(document), status_code=error.status, media_type=PROBLEM, headers=said)


def answer(value: Any, status: int = 200) -> Response[bytes]:
    """A value as a JSON answer; bytes are sent as they are."""
    content = value if isinstance(value, bytes) else msgspec.json.encode(value)
    return Response(content, status_code=status, media_type=_JSON)


async def document(request: Request[Any, Any, Any], kind: type[T]) -> T:
    """The request's body as a `kind`, strictly.

    Raises:
        Problem: 400 with the reason and the path.
    """
    try:
        return read(kind, await request.body())
    except DocumentError as error:
        raise Problem(400, error.reason, f"{error.path}: {error.detail}", path=error.path) from None
