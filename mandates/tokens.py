"""Bearer tokens: whom one speaks for, and how it is kept (DESIGN §8)."""

import hashlib
from dataclasses import dataclass
from typing import Final

from mandates.authority import Role

AGENT: Final = "agent:"
"""How an agent's id begins; a person called so could order without a mandate where nobody expects it."""


@dataclass(frozen=True, slots=True)
class Actor:
    """Whom a token speaks for.

    Attributes:
        id: `person:anna`, `agent:planner`, a device's name.
        role: what the household knows the actor as.
        mandate_hash: for an agent, the mandate the token was given for.
    """

    id: str
    role: Role
    mandate_hash: str | None = None


def token_hash(secret: str) -> str:
    """The form a token is stored in: SHA-256, 64 lower-case hex digits.

    A token is 256 random bits (`Ids.secret`), so a slow, salted hash would protect nothing more.
    """
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()
