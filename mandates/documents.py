"""The documents of trust: signatures, keys, money and agent mandates (Core §5, §6.5)."""

from typing import Annotated, Literal

from msgspec import Meta

from events.documents import Document
from events.times import DATE_TIME_PATTERN

DateTime = Annotated[str, Meta(pattern=DATE_TIME_PATTERN)]
Alg = Literal["EdDSA", "ES256"]
Base64Url = Annotated[str, Meta(pattern=r"^[A-Za-z0-9_-]+$(?!\n)")]
Scope = Literal[
    "plan_meals",
    "search_recipes",
    "start_cooking",
    "stop_cooking",
    "order_groceries",
    "accept_deliveries",
    "offer_surplus",
    "claim_surplus",
    "share_data",
    "change_settings",
]
Confirmation = Literal[
    "any_payment",
    "payment_over_cap",
    "irreversible",
    "safety_override",
    "new_provider",
    "sharing_data",
    "diet_or_allergen_change",
]


class Signature(Document, frozen=True):
    """A signature as it stands in a document (Core §5)."""

    alg: Alg
    kid: str
    sig: Base64Url
    signed_at: DateTime


class KeyRecord(Document, frozen=True):
    """A public key bound to an actor, with its window of validity (Core §5)."""

    kid: str
    alg: Alg
    public_key: Base64Url
    valid_from: DateTime
    actor: str | None = None
    valid_to: DateTime | None = None
    revoked_at: DateTime | None = None
    revocation_reason: Literal["compromised", "superseded", "retired"] | None = None
    hardware_backed: bool | None = None


class Money(Document, frozen=True):
    """An exact amount; the currency is an ISO 4217 code (Core §4)."""

    amount: Annotated[str, Meta(pattern=r"^-?[0-9]{1,15}(\.[0-9]{1,6})?$(?!\n)")]
    currency: Annotated[str, Meta(pattern=r"^[A-Z]{3}$(?!\n)")]


class AgentInfo(Document, frozen=True):
    """What an agent says of itself."""

    vendor: str | None = None
    model: str | None = None
    version: str | None = None


class AgentMandate(Document, frozen=True):
    """What an agent may do on a person's behalf, signed by that person (Core §6.5)."""

    principal: Annotated[str, Meta(min_length=1, max_length=200)]
    agent: Annotated[str, Meta(min_length=1, max_length=200)]
    scopes: Annotated[list[Scope], Meta(min_length=1)]
    expires: DateTime
    agent_info: AgentInfo | None = None
    spend_cap: Money | None = None
    per_order_cap: Money | None = None
    allowed_providers: list[str] | None = None
    confirm_before: list[Confirmation] | None = None
    signature: Signature | None = None
