"""Whether a responsible person is there, as one device knows it (Core §6.6; ruling P2).

The device asks; only an answer to its own open question counts, and only for as long as the device's
monotonic clock says. What was said when is never taken from a message's date.
"""

from dataclasses import dataclass
from typing import Literal

FRESH_S = 60.0
"""How old an answer may be when a step that may not run unattended starts."""

AnswerFault = Literal["no_question", "wrong_nonce", "expired", "too_old"]


@dataclass(frozen=True, slots=True)
class Question:
    """A question put to the household, open until `expires_s` (monotonic)."""

    nonce: str
    asked_s: float
    expires_s: float


class Presence:
    """Questions and answers of one device. All instants are its monotonic seconds."""

    def __init__(self, interval_s: float, wait_s: float = FRESH_S) -> None:
        self._interval_s = interval_s
        self._wait_s = wait_s
        self._question: Question | None = None
        self._answered_s: float | None = None

    @property
    def question(self) -> Question | None:
        """The question now open or just run out."""
        return self._question

    def ask(self, nonce: str, now_s: float) -> Question:
        """Put a new question; an older one no longer counts."""
        self._question = Question(nonce, now_s, now_s + self._wait_s)
        return self._question

    def answer(self, nonce: str | None, age_s: float, now_s: float) -> AnswerFault | None:
        """Take a person's word that is `age_s` old.

        None when it answers the open question, which it then uses up.
        """
        question = self._question
        if question is None:
            return "no_question"
        if nonce != question.nonce:
            return "wrong_nonce"
        if now_s >= question.expires_s:
            return "expired"
        if age_s > FRESH_S:
            return "too_old"
        self._question = None
        # Nobody can have answered before being asked, whatever age the word is given.
        self._answered_s = max(question.asked_s, now_s - age_s)
        return None

    def seen(self, now_s: float) -> None:
        """The device's own control was pressed: somebody is certainly there."""
        self._question = None
        self._answered_s = now_s

    def fresh(self, now_s: float) -> bool:
        """Whether a step that may not run unattended may start on the last answer."""
        return self._answered_s is not None and now_s - self._answered_s <= FRESH_S

    def ask_again_s(self) -> float | None:
        """When to ask again while such a step runs; None while a question is open or nobody ever answered."""
        if self._question is not None or self._answered_s is None:
            return None
        return self._answered_s + self._interval_s

    def unanswered(self, now_s: float) -> bool:
        """Whether the open question has run out."""
        return self._question is not None and now_s >= self._question.expires_s

    def withdraw(self) -> None:
        """Nobody needs to answer any more."""
        self._question = None

    def forget(self) -> None:
        """Nothing that was asked or said before counts any more."""
        self._question = None
        self._answered_s = None
