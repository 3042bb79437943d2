"""One execution on its way: what happens by itself, and what a stop or a person changes (Core §7)."""

import math
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Literal

from adapters.documents import Deviation, ExecuteRequest, HumanNeeded, Intervention, VerifiedBy
from safety.enforcement import FiredLimit
from sim.dish import Dish, Outcome
from sim.lifecycle import Change, Life, at_step, move
from sim.station import Station

PREPARE_S: Final = 30.0
"""Physical seconds before the first step: the arm goes home, the vessel is looked for. Nothing is heated."""
TRY_AGAIN_S: Final = 1.0
"""How long until a stop that could not be written down is written again; its heat is off all along."""
REST_S: Final = 0.2
"""Real seconds until nothing moves any more after a stop (Core §6.2 allows 0.5)."""

Reason = Literal["hands", "confirm", "late", "cold", "nobody", "limit"]
"""Why a dish waits for a person: she does the step, says that it is done, decides on one that takes too long
or never gets warm, did not answer, or a local limit fired."""
What = Literal[
    "stop", "prepare", "cook", "rest", "done", "timeout", "cold", "limit", "progress", "nobody", "ask"
]


@dataclass(frozen=True, slots=True)
class Due:
    """Something that happens by itself at `at_s` (monotonic); `physical_s` is that instant in the physics."""

    at_s: float
    what: What
    physical_s: float
    limit: FiredLimit | None = None


class Cooking:
    """The dish a device is busy with, from its acceptance to its end."""

    def __init__(self, station: Station, life: Life, request: ExecuteRequest, dish: Dish) -> None:
        self._station = station
        self.life = life
        self.request = request
        self.dish = dish
        self._began_at: datetime = station.clock.wall()
        self._since_s = station.clock.monotonic()
        self._progress_s = math.inf
        self._waits_for: Reason | None = None
        self._alerted: set[str] = set()
        self._barred = False

    # --- what happens by itself ------------------------------------------------------------------------

    def next(self) -> Due | None:
        """What happens next if nobody acts; None when nothing does."""
        speed = self._station.speed
        if self._barred and self.life.state != "stopping" and not self.life.final:
            at_s = self._since_s + TRY_AGAIN_S
            return Due(at_s, "stop", at_s * speed)
        match self.life.state:
            case "accepted":
                return Due(self._since_s, "prepare", self._since_s * speed)
            case "preparing":
                at_s = self._since_s + PREPARE_S / speed
                return Due(at_s, "cook", at_s * speed)
            case "stopping":
                at_s = self._since_s + REST_S
                return Due(at_s, "rest", at_s * speed)
            case "running":
                return min(self._running(), key=lambda due: due.at_s, default=None)
            case _:
                return None

    def _running(self) -> list[Due]:
        speed, presence, run = self._station.speed, self._station.presence, self.dish.run
        dues: list[Due] = []
        if self.dish.attended:
            question, again_s = presence.question, presence.ask_again_s()
            if question is not None:
                dues.append(Due(question.expires_s, "nobody", question.expires_s * speed))
            elif again_s is not None and run.active:
                dues.append(Due(again_s, "ask", again_s * speed))
        if not run.active:
            return dues
        fires = run.fires(self._station.watch)
        if fires is not None and fires[1].limit not in self._alerted:
            dues.append(Due(fires[0] / speed, "limit", fires[0], fires[1]))
        ending = run.ending()
        if math.isfinite(ending.at_s):
            dues.append(Due(ending.at_s / speed, ending.kind, ending.at_s))
        dues.append(Due(self._progress_s, "progress", self._progress_s * speed))
        return dues

    def happen(self, due: Due) -> None:
        """Do what is due. The physics takes it at its own instant, however late we are."""
        at_s = due.physical_s
        match due.what:
            case "stop":
                self.stop()
            case "prepare":
                self._since_s = due.at_s
                self._record(move(self.life, "preparing", self._now()))
            case "cook":
                self._enter(at_s)
            case "rest":
                self._end("stopped", "aborted_safe")
            case "done":
                self._done(at_s)
            case "timeout":
                self._timeout(at_s)
            case "cold":
                self._wait_for("cold", f"{self._name()} does not reach its temperature", at_s)
            case "limit":
                self._limit(at_s, due.limit)
            case "progress":
                self._progress()
            case "nobody":
                self._wait_for("nobody", f"nobody answered, and {self._name()} may not run unattended")
            case "ask":
                self._ask()

    # --- what others change ----------------------------------------------------------------------------

    @property
    def barred(self) -> bool:
        """Whether it was stopped: nothing heats or moves for it any more."""
        return self._barred

    def bar(self) -> None:
        """Heat and motion off for good. Nothing here can fail."""
        self._barred = True
        self._rest()

    def stop(self) -> None:
        """Heat and motion off first; then, where Core allows it, `stopping` or `stopped`.

        Raises:
            MemoryUnavailable: it is at rest, and will be written down as soon as that works again.
        """
        self.bar()
        if self.life.state in ("accepted", "preparing", "running", "paused", "needs_human"):
            self._since_s = self._station.clock.monotonic()
        if self.life.state == "accepted":
            self._end("stopped", "aborted_safe")
        elif self.life.state in ("preparing", "running", "paused", "needs_human"):
            self._record(move(self.life, "stopping", self._now()))
            self.dish.helped(Intervention(kind="stop", at=self._now()))

    def fail_safe(self) -> None:
        """The device cannot remember what it does: it does nothing more, and says so when it can."""
        self.bar()
        self._since_s = self._station.clock.monotonic()

    def pause(self) -> None:
        """Heat and motion off until somebody resumes."""
        if self.life.state == "running":
            self._rest()
            self._record(move(self.life, "paused", self._now()))

    def resume(self) -> None:
        """A person has acted: go on. The execution is `needs_human` or `paused`."""
        waited_for, self._waits_for = self._waits_for, None
        at_s = self._station.physical_s()
        if waited_for == "hands":
            self.dish.helped(Intervention(kind="take_over", at=self._now()))
            self._next_step(at_s, "human")
            return
        self.dish.helped(Intervention(kind="confirm", at=self._now()))
        if waited_for == "confirm":
            self._next_step(at_s, "human")
        elif waited_for == "late":
            self._next_step(at_s, "human", Deviation(kind="extended_time", detail="ended by a person"))
        else:
            self._station.clear_alarms()
            self._record(move(self.life, "running", self._now(), step=self.dish.step(at_s)))
            self._go(at_s)

    def somebody_is_there(self) -> None:
        """The question was answered: a step that waited for it starts."""
        if self.life.state == "running" and not self.dish.run.active:
            self._go(self._station.physical_s())

    # --- steps -----------------------------------------------------------------------------------------

    def _enter(self, at_s: float) -> None:
        """Go to the next step; the execution may already be `running`."""
        self.dish.enter(at_s, self._now())
        step = self.dish.step(at_s)
        if self.life.state == "running":
            self._record(at_step(self.life, step, self._now()))
        else:
            self._record(move(self.life, "running", self._now(), step=step))
        self._go(at_s)

    def _go(self, at_s: float) -> None:
        """Begin the present step, unless it is somebody else's or nobody is there."""
        presence, now_s = self._station.presence, self._station.clock.monotonic()
        if self._barred:
            return
        if self.dish.planned.by == "human":
            self._wait_for("hands", f"{self._name()} is done by hand; resume when it is done")
        elif self.dish.attended and not presence.fresh(now_s):
            # A question that is still open need not be put twice.
            if presence.question is None or presence.unanswered(now_s):
                self._ask()
        else:
            self.dish.run.begin(at_s)
            self._progress_s = now_s + self._station.progress_interval_s

    def _done(self, at_s: float) -> None:
        verified_by = self.dish.planned.verified_by
        if verified_by == "human":
            self._wait_for("confirm", f"{self._name()} looks done; resume when you agree", at_s)
        else:
            self._next_step(at_s, verified_by)

    def _timeout(self, at_s: float) -> None:
        run = self.dish.run
        action = run.node.on_timeout
        if action in ("extend", "retry") and run.extensions == 0:
            run.allow_more(at_s)
        elif action == "skip_optional" and run.node.optional:
            self._next_step(at_s, self.dish.planned.verified_by, Deviation(kind="skipped_optional"))
        elif action == "abort_safe":
            self.stop()
        else:
            self._wait_for("late", f"{self._name()} takes longer than the recipe allows; is it done?", at_s)

    def _next_step(self, at_s: float, verified_by: VerifiedBy, deviation: Deviation | None = None) -> None:
        """The present step is over: the next one, or the end."""
        self.dish.leave(at_s, self._now(), verified_by=verified_by, deviation=deviation)
        if not self.dish.last:
            self._enter(at_s)
            return
        if self.life.state != "running":
            self._record(move(self.life, "running", self._now()))
        self._end("completed", "served")

    def _limit(self, at_s: float, fired: FiredLimit | None) -> None:
        if fired is None:
            return
        self.dish.fired(fired, self._now())
        if fired.action == "alert":
            self._alerted.add(fired.limit)
        elif fired.action in ("stop_all", "stop_motion"):
            self.stop()
        else:
            self._wait_for("limit", f"limit {fired.limit} cut the heat during {self._name()}", at_s)
        self._station.alarm(self.life.execution, fired)

    def _progress(self) -> None:
        station = self._station
        self._progress_s = station.clock.monotonic() + station.progress_interval_s
        step = self.dish.step(station.physical_s())
        if step != self.life.step:
            self._record(at_step(self.life, step, self._now()))

    def _ask(self) -> None:
        station = self._station
        question = station.presence.ask(station.ids.secret(), station.clock.monotonic())
        if station.voice is not None:
            wait_s = question.expires_s - question.asked_s
            station.say([station.voice.question(self.life.execution, self._name(), question, wait_s)])

    def _wait_for(self, reason: Reason, why: str, at_s: float | None = None) -> None:
        """Heat and motion off, and a person is needed."""
        self._rest(at_s)
        self._waits_for = reason
        step = self.dish.step(self._station.physical_s() if at_s is None else at_s)
        self._record(
            move(self.life, "needs_human", self._now(), step=step, human_needed=HumanNeeded(why=why[:300]))
        )

    # --- the bottom ------------------------------------------------------------------------------------

    def _rest(self, at_s: float | None = None) -> None:
        """Heat and motion off, and no question stays open."""
        if self.dish.entered:
            self.dish.run.halt(self._station.physical_s() if at_s is None else at_s)
        self._station.presence.withdraw()

    def _end(self, state: Literal["stopped", "completed"], outcome: Outcome) -> None:
        station = self._station
        if self.dish.entered and self.dish.unfinished:
            at_s = station.physical_s()
            self.dish.leave(at_s, self._now(), verified_by=self.dish.planned.verified_by, deviation=_STOPPED)
        change = move(self.life, state, self._now())
        log = station.log(change.life, self.request, outcome, self._began_at, self.dish)
        station.change([change], log)
        self.life = change.life
        station.clear_alarms()

    def _record(self, change: Change) -> None:
        self._station.change([change])
        self.life = change.life

    def _now(self) -> str:
        return self._station.now_text()

    def _name(self) -> str:
        planned = self.dish.planned
        return f"step {planned.node} ({planned.op.rpartition('.')[2].replace('_', ' ')})"


_STOPPED: Final = Deviation(kind="other", detail="stopped before its end")
