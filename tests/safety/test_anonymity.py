"""An incident report tells what happened and on which day, and nothing of who or where (Core §6.9)."""

from typing import Any

import pytest

from events.documents import from_plain
from safety.anonymity import traces
from safety.feed_documents import IncidentReport

KNOWN = ("person:anna", "agent:planner", "demo-hob-robot", "home-of-brandt", "Jo")


def report(**more: Any) -> dict[str, Any]:
    return {
        "core": "0.2.0",
        "kind": "IncidentReport",
        "id": "inc-0a1b2c3d4e",
        "date": "2026-09-28",
        "category": "cw.incident.overheat",
        "severity": "medium",
        "description": "Oil reached 201 °C while the robot waited; heat was cut automatically.",
        **more,
    }


def kinds(plain: dict[str, Any]) -> set[str]:
    return {one.kind for one in traces(from_plain(IncidentReport, plain), plain, KNOWN)}


CASES: tuple[tuple[str, set[str]], ...] = (
    ("Anna stood beside it.", {"name"}),
    ("ANNA's pan burnt.", {"name"}),
    ("The device demo-hob-robot did it.", {"name"}),
    ("planner asked for it.", {"name"}),
    ("Herr Brandt war dabei.", {"name"}),
    ("Mrs. Miller called.", {"name"}),
    ("My name is unimportant.", {"name"}),
    ("Write to cook@example.org please.", {"address"}),
    ("See https://kitchen.example/log", {"address"}),
    ("The hub at 192.168.1.17 said so.", {"address"}),
    ("aa:bb:cc:dd:ee:ff is the hob.", {"address"}),
    ("Call +49 170 1234567.", {"address"}),
    ("Musterstraße 12 in der Küche.", {"address"}),
    ("12 Elm Street, ground floor.", {"address"}),
    ("50667 Köln", {"address"}),
    ("It happened at 18:42.", {"exact_time"}),
    ("It happened at 7 pm.", {"exact_time"}),
    ("Um 19 Uhr wurde es heiß.", {"exact_time"}),
    ("On 2026-09-27 it was fine.", {"exact_time"}),
    ("Am 27.09.2026 war es gut.", {"exact_time"}),
    ("At 2026-09-28T18:42:10Z the limit fired.", {"exact_time"}),
    ("execution exe-0123456789abcdef0123 failed", {"id"}),
    (f"recipe sha256:{'a' * 64}", {"id"}),
    ("serial no. K2291-77", {"id"}),
    ("Seriennummer 8842", {"id"}),
    ("did:web:bakery.example said so", {"id"}),
    ("account:4711 paid", {"id"}),
)


@pytest.mark.parametrize(("text", "found"), CASES, ids=[case[0][:30] for case in CASES])
def test_what_tells_who_where_or_when_is_named(text: str, found: set[str]) -> None:
    assert found <= kinds(report(description=text)), kinds(report(description=text))


@pytest.mark.parametrize(
    "text",
    [
        "Oil reached 201 °C while the robot waited for a delivery; heat was cut automatically.",
        "Das Öl wurde 200 °C heiß, nach 12 Minuten schaltete die Grenze ab.",
        "The pan of 3.5 l boiled over after 20 min; 2 of 3 sensors agreed at 98.5 °C.",
        "Die Frau am Herd war gerade nicht da.",
        "Rauch nach 30 s bei Stufe 7.",
        "وصل الزيت إلى 201 درجة وانقطعت الحرارة.",
    ],
)
def test_what_happened_may_be_told(text: str) -> None:
    assert kinds(report(description=text)) == set()


def test_the_public_example_tells_nothing_once_its_id_is_its_own() -> None:
    example = report(
        outcome="near_miss",
        op="cw.op.fry",
        deviceModel="Example KR-2",
        safetyLimitsFired=["oil.max_temp"],
        contributingFactors=["agent_instruction"],
        recipe="cw:cookwala.ai:fah-123",
    )
    assert kinds(example) == set()


@pytest.mark.parametrize(
    ("more", "found"),
    [
        ({"id": "exe-0123456789"}, {"id"}),
        ({"id": "anna-2026-01"}, {"id"}),
        ({"x-note": "anything"}, {"extension"}),
        ({"deviceModel": "Anna"}, {"name"}),
        ({"deviceModel": "KR-2 exe-01234567"}, {"id"}),
        ({"recipe": "cw:home-of-brandt:soup"}, {"name"}),
    ],
)
def test_other_members_are_looked_at_too(more: dict[str, Any], found: set[str]) -> None:
    assert found <= kinds(report(**more))
