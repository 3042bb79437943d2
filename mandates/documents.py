"""The documents of trust: signatures, keys, money and agent mandates (Core §5, §6.5)."""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Final, Literal

from iso4217 import Currency
from msgspec import UNSET, Meta

from events.documents import Document
from events.texts import Date, Name, UntrustedText
from events.times import DATE_TIME_PATTERN

DateTime = Annotated[str, Meta(pattern=DATE_TIME_PATTERN)]
Alg = Literal["EdDSA", "ES256"]
Base64Url = Annotated[str, Meta(pattern=r"^[A-Za-z0-9_-]+$(?!\n)")]
Hash = Annotated[str, Meta(pattern=r"^sha256:[0-9a-f]{64}$(?!\n)")]
CURRENCIES: Final = frozenset(currency.code for currency in Currency)
"""The codes of ISO 4217 in force (ruling D7)."""
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
    kid: Name
    sig: Base64Url
    signed_at: DateTime


class KeyRecord(Document, frozen=True):
    """A public key bound to an actor, with its window of validity (Core §5)."""

    kid: Name
    alg: Alg
    public_key: Base64Url
    valid_from: DateTime
    actor: Name | None = None
    valid_to: DateTime | None = None
    revoked_at: DateTime | None = None
    revocation_reason: Literal["compromised", "superseded", "retired"] | None = None
    hardware_backed: bool | None = None


class Money(Document, frozen=True):
    """An exact amount; the currency is an ISO 4217 code (Core §4)."""

    amount: Annotated[str, Meta(pattern=r"^-?[0-9]{1,15}(\.[0-9]{1,6})?$(?!\n)")]
    currency: Annotated[str, Meta(pattern=r"^[A-Z]{3}$(?!\n)")]

    json_schema: ClassVar[Mapping[str, Any]] = {"properties": {"currency": {"enum": sorted(CURRENCIES)}}}

    def __post_init__(self) -> None:
        if self.currency not in CURRENCIES:
            raise ValueError("no currency of ISO 4217")


class AgentInfo(Document, frozen=True):
    """What an agent says of itself."""

    vendor: Name | None = None
    model: Name | None = None
    version: Name | None = None


class AgentMandate(Document, frozen=True):
    """What an agent may do on a person's behalf, signed by that person (Core §6.5)."""

    principal: Annotated[str, Meta(min_length=1, max_length=200)]
    agent: Annotated[str, Meta(min_length=1, max_length=200)]
    scopes: Annotated[list[Scope], Meta(min_length=1)]
    expires: DateTime
    agent_info: AgentInfo | None = None
    spend_cap: Money | None = None
    per_order_cap: Money | None = None
    allowed_providers: list[Name] | None = None
    confirm_before: list[Confirmation] | None = None
    signature: Signature | None = None


class Disclosure(Document, frozen=True):
    """Stands for a value that a signed document conceals; with salt and value in a copy that discloses it."""

    digest: Hash
    salt: Annotated[str, Meta(min_length=22, max_length=512)] | None = None
    value: Any = UNSET
    """What was concealed, which may be `null`; `UNSET` where it stays concealed."""


class ReportSubject(Document, frozen=True):
    """What was tested."""

    name: Annotated[str, Meta(max_length=120)]
    vendor: Annotated[str, Meta(max_length=120)] | None = None
    version: Annotated[str, Meta(max_length=60)] | None = None
    capabilities_hash: Hash | None = None


class ReportSuite(Document, frozen=True):
    """How one suite of vectors went."""

    suite: Annotated[str, Meta(pattern=r"^[a-z0-9_/-]+$(?!\n)")]
    total: Annotated[int, Meta(ge=0)]
    passed: Annotated[int, Meta(ge=0)]
    failed: list[Name] | None = None


class ReportTool(Document, frozen=True):
    """What tested."""

    name: Annotated[str, Meta(max_length=80)]
    version: Annotated[str, Meta(max_length=60)]
    commit: Annotated[str, Meta(pattern=r"^[0-9a-f]{7,40}$(?!\n)")] | None = None


class ConformanceReport(Document, frozen=True):
    """The signed record behind a claim of conformance (Core §1)."""

    profile: Annotated[str, Meta(pattern=r"^0\.1\.[0-9]+$(?!\n)")]
    kind: Literal["ConformanceReport"]
    id: Annotated[str, Meta(pattern=r"^[a-z0-9][a-z0-9._:-]{2,95}$(?!\n)")]
    core: Annotated[str, Meta(pattern=r"^[0-9]+\.[0-9]+\.[0-9]+$(?!\n)")]
    claim: Annotated[
        str,
        Meta(
            pattern=r"^(recipe_publisher|executor|catalog|agent|verifier|humanitarian:H[0-3]|household|registry"
            r"|fleet|supply)$(?!\n)"
        ),
    ]
    subject: ReportSubject
    suites: Annotated[list[ReportSuite], Meta(min_length=1)]
    vectors_hash: Hash
    tool: ReportTool
    date: Date
    status: Literal["self_declared", "verified", "certified"]
    signature: Signature
    verifier: Annotated[str, Meta(max_length=120)] | None = None
    notes: UntrustedText | None = None
    hash: Hash | None = None

    json_schema: ClassVar[Mapping[str, Any]] = {
        "if": {"properties": {"status": {"not": {"const": "self_declared"}}}},
        "then": {"required": ["verifier"]},
    }

    def __post_init__(self) -> None:
        if self.status != "self_declared" and self.verifier is None:
            raise ValueError(f"{self.status} by whom? a verifier is missing")
