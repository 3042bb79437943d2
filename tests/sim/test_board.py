"""The board shows what the hub answered: devices, dishes, what waits, what happened."""

from rich.console import Console

from sim.board import Kitchen, draw

STEP = {
    "node": "n7",
    "op": "cw.op.simmer",
    "progress": 0.5,
    "readings": [{"sensor": "cw.sense.liquid_temp", "value": 92.4, "unit": "degC", "estimated": True}],
}
EXECUTIONS = [
    {"state": "running", "x-aboyeur-recipe": "example-lentil-soup", "x-aboyeur-device": "hob", "step": STEP},
    {
        "state": "refused",
        "x-aboyeur-recipe": "cw:x.example:example-salad",
        "refusal": {"reason": "mandate_scope"},
    },
    {"state": "stopping", "x-aboyeur-device": "arm", "x-aboyeur-stop": {"phase": "sent", "by": "anyone"}},
    {"state": "completed", "x-aboyeur-device": "oven", "x-aboyeur-log": {"verdict": "ok"}},
]


def shown(kitchen: Kitchen) -> str:
    console = Console(width=120, record=True, force_terminal=False)
    console.print(draw(kitchen))
    return console.export_text()


def test_a_kitchen_is_drawn_with_everything_that_a_person_looks_for() -> None:
    text = shown(
        Kitchen(
            devices=[{"name": "hob", "liveness": "late", "busyWith": "exe-1"}],
            executions=EXECUTIONS,
            needs=[{"kind": "resume", "device": "hob", "why": "step n14 (deep fry) is done by hand"}],
            story=[f"line {number}" for number in range(30)],
        )
    )
    for words in (
        "hob", "late", "exe-1", "lentil-soup", "n7 simmer", "~92", "mandate_scope", "salad", "(none)",
        "stop sent", "log: ok", "deep fry", "line 29",
    ):  # fmt: skip
        assert words in text, words
    assert "line 3 " not in text


def test_a_kitchen_that_has_just_begun_is_drawn_too() -> None:
    assert "nothing" in shown(Kitchen())
