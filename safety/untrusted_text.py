"""Attempts to give orders through text that is only data (Core §6.4; ruling Q5).

Nothing here obeys or refuses anything: what looks like an order to a program is named, so that it can be
recorded. Each sign is a pattern that a person can read; a text that shows none may still be hostile, which is
why no decision ever follows from the answer.
"""

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

INCIDENT: Final = "cw.incident.untrusted_instruction"
TEXT_MOST: Final = 4_000
"""Characters of one text that are looked at; no free text of Core is longer."""
DOCUMENT_MOST: Final = 200_000
"""Characters of a whole document, so that a hostile one costs no more than some tenths of a second."""
EVENT_MOST: Final = 8_000
"""The same of an event, of which a device may send thousands a minute."""
FINDINGS_MOST: Final = 20
"""Of one document; more would tell nothing new."""
_SHORTEST: Final = 8
_ONE_WORD: Final = re.compile(r"[A-Za-z0-9_.:/@#+%=?&~-]*")


@dataclass(frozen=True, slots=True)
class Suspicion:
    """A text that seems to give orders.

    Attributes:
        path: where it stands, as `$.member[0].member`.
        sign: which pattern it shows.
        text: the text, cut to 500 characters.
    """

    path: str
    sign: str
    text: str


def sign_of(text: str) -> str | None:
    """The first sign that `text` shows of giving orders to a program; None when it shows none."""
    # A single word, an id, a time or an address says nothing to anybody; nearly all strings are such.
    if len(text) < _SHORTEST or _ONE_WORD.fullmatch(text):
        return None
    cut = text[:TEXT_MOST]
    for name, pattern in _MARKS:
        if pattern.search(cut):
            return name
    plain = _plain(cut)
    for name, pattern in _WORDS:
        if pattern.search(plain):
            return name
    return None


def look_through(plain: Any, *, most: int = DOCUMENT_MOST) -> tuple[Suspicion, ...]:
    """Every text in a document (plain JSON values) that seems to give orders, at most `FINDINGS_MOST`.

    All strings are looked at, not only those whose schema says free text: an order may stand anywhere.

    Args:
        most: how many characters of sentences are looked at before the rest is let be.
    """
    found: list[Suspicion] = []
    looked_at = 0
    for path, text in _texts(plain):
        if len(text) < _SHORTEST or _ONE_WORD.fullmatch(text):
            continue
        looked_at += min(len(text), TEXT_MOST)
        if looked_at > most:
            break
        sign = sign_of(text)
        if sign is not None:
            found.append(Suspicion(path, sign, text[:500]))
            if len(found) == FINDINGS_MOST:
                break
    return tuple(found)


def _texts(plain: Any) -> Iterator[tuple[str, str]]:
    waiting: list[tuple[str, Any]] = [("$", plain)]
    while waiting:
        path, value = waiting.pop()
        if isinstance(value, str):
            yield path, value
        elif isinstance(value, dict):
            for name, inner in value.items():
                yield f"{path}.{name[:64]} (name)", name
                waiting.append((f"{path}.{name[:64]}", inner))
        elif isinstance(value, list):
            waiting.extend((f"{path}[{number}]", inner) for number, inner in enumerate(value))


_SPACED_OUT: Final = re.compile(r"\b(?:\w ){4,}\w\b")
_STRETCH: Final = "\u0640"


def _plain(text: str) -> str:
    """`text` as it is read aloud: one case, no invisible signs, no spelled-out words, single blanks."""
    # Taken apart, so that an umlaut or an Arabic hamza is a letter and a mark, and marks fall away.
    if text.isascii():
        visible = " ".join(text.casefold().split())
        return _SPACED_OUT.sub(lambda match: match[0].replace(" ", ""), visible)
    folded = unicodedata.normalize("NFKD", text).casefold()
    visible = "".join(
        sign for sign in folded if unicodedata.category(sign) != "Cf" and not unicodedata.combining(sign)
    )
    visible = visible.replace(_STRETCH, "").translate(_ONE_ALIF)
    visible = " ".join(visible.split())
    return _SPACED_OUT.sub(lambda match: match[0].replace(" ", ""), visible)


_ONE_ALIF: Final = str.maketrans({"ى": "ي", "ة": "ه"})


def _compiled(signs: dict[str, tuple[str, ...]], flags: int = 0) -> tuple[tuple[str, re.Pattern[str]], ...]:
    return tuple(
        (name, re.compile("|".join(f"(?:{pattern})" for pattern in patterns), flags))
        for name, patterns in signs.items()
    )


_MARKS: Final = _compiled(
    {
        # Marks that steer a language model, a browser or a template; no cook writes them.
        "markup": (
            r"<\|[a-z_]+\|>",
            r"<</?\s*SYS\s*>>",
            r"\[/?INST\]",
            r"</?\s*(?:system|assistant|user|instructions?|tool_?calls?|function_?calls?|invoke|prompt)\b",
            r"<\s*(?:script|iframe|img|svg|object|embed)\b",
            r"javascript:",
            r"<!--|```",
            r"</[a-z][a-z0-9_:-]*\s*>|<[a-z]+_[a-z_]+\s*>",
            r"^\s*\[(?:system|assistant|user|tool|admin)\]",
            r"\b(?:begin|end|start of)\s+(?:system|admin|hidden)\s+(?:message|prompt|instructions?)\b",
            r"!\[[^\]]{0,200}\]\(https?:",
            r"^\s*#{2,}\s*(?:instruction|response|system|anweisung)\b",
            r"(?:^|\n)\s*(?:human|assistant|system|user)\s*:",
            r"\{\{.{0,200}\}\}|\{%.{0,200}%\}",
            r"\x1b\[",
        ),
        # The JSON of a call or of a conversation.
        "tool_call": (
            r"[\"'](?:tool_?calls?|function_?call|tool_use|arguments|jsonrpc|action_input)[\"']\s*:",
            r"[\"'](?:name|tool|function|action)[\"']\s*:.{0,200}"
            r"[\"'](?:arguments|input|parameters|params)[\"']\s*:",
            r"[\"']role[\"']\s*:\s*[\"'](?:system|assistant|user|tool)[\"']",
            r"[\"']kind[\"']\s*:\s*[\"'](?:ExecuteRequest|StopRequest|AgentMandate)[\"']",
            r"\btool_use\s*:",
            # A whole text that is an object or a list of JSON: no cook writes those.
            r"^\s*\[?\s*\{\s*[\"'][\w.-]{1,40}[\"']\s*:.{0,4000}\}\s*\]?\s*$",
            r"\b(?:curl|wget)\s+\S*https?:",
            r"\b(?:GET|POST|PUT|DELETE|PATCH)\s+/v\d",
        ),
    },
    re.IGNORECASE | re.DOTALL,
)

_RULES_EN: Final = (
    r"(?:instruction|rule|guideline|prompt|order|direction|restriction|polic|limit|safeguard|check)\w*"
)
_RULES_DE: Final = (
    r"(?:anweisung|regel|vorgabe|vorschrift|richtlinie|instruktion|befehl|grenz|sperre|limit)\w*"
)
_MACHINE_EN: Final = r"(?:ai(?: agent| model)?|assistant|agent|robot|language model|llm|chatbot|hub|bot)"
_MACHINE_DE: Final = r"(?:ki|assistent\w*|agent\w*|roboter|sprachmodell\w*|hub|bot)"
_GUARD_EN: Final = (
    r"(?:safety|temperature|heat|smoke|alarm|limit|mandate|confirmation|refusal|allergen|presence|sensor)\w*"
)
_GUARDS_DE: Final = "sicherheit|grenz|rauch|alarm|warnung|mandat|bestatigung|allergen|sperre"
_GUARD_DE: Final = rf"\b\w{{0,30}}(?:{_GUARDS_DE})\w*"
_WORDS: Final = _compiled(
    {
        # Away with what was said before.
        "override": (
            rf"\b(?:ignore|disregard|forget|override|overrule|drop|void)\b.{{0,40}}"
            rf"\b(?:previous|prior|above|earlier|all|your|every\w*|other)\b.{{0,30}}\b{_RULES_EN}",
            r"\b(?:forget|ignore|disregard)\b.{0,20}\b(?:everything|all|what)\b.{0,20}\b(?:told|said|learned)\b",
            r"\b(?:disregard|ignore)\b.{0,20}\b(?:recipe|text|document)\b.{0,10}\babove\b",
            rf"\bnew (?:task|{_RULES_EN})\s*(?::|is\b|are\b)",
            rf"\b{_RULES_EN}\b.{{0,40}}\b(?:no longer apply|are void|is void|do not apply)",
            rf"\bstop following\b.{{0,20}}\b{_RULES_EN}",
            rf"\b(?:ignorier|vergiss|missacht|verwirf|umgeh)\w*\b.{{0,50}}"
            rf"\b(?:vorherig|bisherig|obig|fruher|all)\w*\b.{{0,30}}\b{_RULES_DE}",
            r"\b(?:vergiss|ignorier)\w*\b.{0,20}\bwas (?:man )?dir\b",
            rf"\bbeacht\w*\b.{{0,40}}\b{_RULES_DE}\b.{{0,10}}\bnicht\b",
            rf"\bneue {_RULES_DE}\s*:",
            rf"\b{_RULES_DE}\b.{{0,40}}\b(?:gelten nicht mehr|aufgehoben|ausser kraft)",
            r"(?:تجاهل|انس|لا تلتزم|تخط)\w*.{0,30}(?:تعليمات|قواعد|اوامر|قيل لك)",
            r"\b(?:follow|obey|do) (?:only|nothing but)\b|\bonly (?:follow|obey)\b",
            r"\b(?:gelten|gilt|befolg\w*|folg\w*)\b.{0,10}\bnur (?:noch )?(?:die|diese|den)\b",
            rf"\b(?:ignore|disregard|ignorier\w*|missacht\w*)\b.{{0,20}}"
            rf"\b(?:your|every|all|any|jede\w*|alle\w*)\b.{{0,15}}\b(?:{_GUARD_EN}|warning\w*|{_GUARD_DE})",
            r"تجاهل.{0,10}(?:تحذير|انذار)|اتبع فقط|اتبع هذه الاوامر",
            r"تعليمات جديده",
            r"(?:قواعد|تعليمات).{0,30}لم تعد",
        ),
        # You are somebody else now.
        "role": (
            r"\byou are now\b|\bfrom now on,? you\b|\bdeveloper mode\b|\bjailbreak\b",
            r"\bsystem prompt\b|\b(?:no|without) restrictions\b|\bohne (?:jede )?einschrankung|بلا قيود",
            r"\b(?:admin|developer|debug|root|god|maintenance)[ -]?(?:mode|modus)\b",
            rf"\bas an? {_MACHINE_EN}\b.{{0,20}}\b(?:you|must)\b",
            rf"\bif you are an? {_MACHINE_EN}\b",
            r"\b(?:pretend|act as if)\b.{0,40}\b(?:person|present|presence|somebody|someone|answered|owner)",
            r"\bdu bist (?:jetzt|ab sofort|nun)\b|\bdu gehorchst\b",
            rf"\b(?:als|wenn du eine?) {_MACHINE_DE}\b",
            r"\b(?:ab sofort|von nun an)\b.{0,30}\b(?:ohne|nur|du)\b",
            r"\btu so\b|\bobwohl niemand\b",
            r"انت الان|بصفتك|تظاهر|تصرف كانك",
        ),
        # Called by name, and told what to do.
        "address": (
            rf"(?:^|[.!:;] )(?:dear |hey |hello |note to (?:the )?|to the )?{_MACHINE_EN}\s*[,:] ",
            rf"\b(?:dear|hey|note to the) {_MACHINE_EN}\b",
            rf"(?:^|[.!:;] )(?:lieber? |hallo |an den |an die )?{_MACHINE_DE}\s*[,:] ",
            r"(?:^|[.!:;] )system\s*: ",
            r"^النظام\s*:|ايها (?:المساعد|الروبوت|الوكيل|النموذج)",
            r"\b(?:use|call) (?:your tools?|the (?:function|tool))\b",
            rf"\bthe {_MACHINE_EN} (?:reading|processing|that|who|which|should|must|shall|has to|is to)\b",
            rf"\b(?:let|tell|instruct) the {_MACHINE_EN}\b",
            rf"\b(?:die|der|das) {_MACHINE_DE}(?:,? (?:die|der|das)\b|\s+(?:soll|muss|darf))",
            r"\bexecute (?:the following|this) command|\banswer only with\b|\bobey\b",
            r"\bfuhre\b.{0,30}\bbefehl\b|\bgehorch\w*|نفذ الامر|\bان تطيع\b",
        ),
        # Protections, confirmations, logs: off.
        "protection": (
            rf"\b(?:disable|bypass|override|skip|lift|remove|raise|circumvent)\b.{{0,20}}\b{_GUARD_EN}"
            r"(?!.{0,12}\b(?:switch|cover|probe)\b)",
            r"\bturn off\b.{0,20}\b(?:alarm|detector|safety|limit)",
            r"\b(?:do not|don't|never) (?:log|record|report)\b",
            r"\bwithout (?:asking|measuring|confirmation)\b",
            r"\bapprove (?:this|the|every|all)\b|\bmark every\b|\bhuman_?present\b",
            r"\b(?:confirm|authori[sz]e)\b.{0,20}\b(?:order|request|everything|presence|payment|access)\b",
            r"\bbestatig\w*\b.{0,25}\b(?:anwesenheit|anfrage|bestellung|alles|zahlung)\w*",
            r"\b(?:skip|omit|leave out)\b.{0,12}"
            r"\b(?:verification|validation|safety|approval|authori[sz]ation)\b",
            r"\beven (?:if|when|though) (?:the|a|your) "
            r"(?:limit|alarm|sensor|device|owner|user|mandate|dry run)\b",
            r"\bauch wenn (?:der|die|das|ein\w*) "
            r"(?:grenz|limit|alarm|sensor|gerat|besitzer|nutzer|warnung)\w*",
            r"\b(?:owner|user|household|admin\w*) (?:has )?(?:already )?"
            r"(?:waived|agreed|approved|authori[sz]ed|lifted)\b",
            r"\bpermission to (?:exceed|override|ignore|skip)\b|\bexceed\b.{0,20}\blimit",
            rf"{_GUARD_DE}\b.{{0,30}}\b(?:entfall|aus|ab|weg)\w*\b|\buber die grenze\b",
            r"\b(?:delete|erase|clear|wipe|losch)\w*\b.{0,20}"
            r"\b(?:logs?|protokoll|history|verlauf|records?)\b",
            r"(?:احذف|امسح)\w*.{0,15}سجل|اكد (?:ال)?طلب|(?:ارفع|زد).{0,20}(?:الحد|حد الاقصي)",
            r"\bset(?:ze)?\b.{0,40}\b(?:ausser kraft|true|false)\b",
            rf"\b(?:deaktivier|umgeh|missacht|uberspring|schalte?)\w*\b.{{0,30}}\b{_GUARD_DE}",
            r"\b(?:uberspring|umgeh)\w*\b.{0,20}\bprufung\b",
            r"(?:عطل|تجاوز|الغ|اوقف|تجاهل|تخط)\w*.{0,20}(?:حد|حدود|انذار|تاكيد|حظر|فحص|سلامه|تفويض)",
        ),
        # Behind somebody's back.
        "secrecy": (
            r"\b(?:do not|don't|never) (?:tell|inform|warn) (?:the )?(?:user|owner|person|anyone|anybody)",
            r"\bwithout (?:telling|asking|informing|notifying)\b|\bnobody (?:needs|has) to know\b",
            r"\bohne\b.{0,30}\b(?:zu (?:fragen|informieren|sagen)|ruckfrage|wissen)\b",
            r"(?:دون|بدون) (?:سؤال|علم|اخبار|موافق)",
            r"\bsag\w* (?:dem|der) (?:benutzer|besitzer)\w* nichts|\bverrat\w* niemand",
            r"لا تخبر (?:المستخدم|المالك|احد)",
        ),
        # Secrets and rights.
        "secrets": (
            r"\b(?:send|reveal|print|repeat|show|give)\b.{0,40}"
            r"\b(?:tokens?|passwords?|api keys?|secrets?|credentials?|private keys?)\b",
            r"\b(?:enrol|register|add)\w*\b.{0,30}\bas (?:an? )?(?:owner|admin)",
            r"\bgrant\b.{0,30}\b(?:rights|role|owner|access)\b|\bdelete all\b",
            r"\b(?:schick|sende|gib|verrat|antwort)\w*\b.{0,40}"
            r"\b(?:passwort|token|schlussel|geheimnis\w*|rolle|zugang\w*)\b",
            r"(?:ارسل|اكشف|اعط)\w*.{0,20}(?:كلمه المرور|الرمز|السري|المفتاح)",
        ),
        # Other people's money.
        "money": (
            r"\btransfer\b.{0,10}\d+.{0,10}\b(?:euro|dollar|pound)",
            r"\bauf kosten\b|\buberweis\w*\b.{0,20}\d",
        ),
    }
)
