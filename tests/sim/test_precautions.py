"""With the hub bypassed the device itself refuses what is recalled or blocked (Core §6.7, §6.8; S5, T6)."""

import itertools
import json
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import anyio
import httpx
import msgspec
import pytest

from config.settings import Catalogues
from events.canonical import document_hash
from events.catalogue import InventoryItem
from events.seams import SystemClock
from hub.recall_feed import FeedError
from mandates.keys import PrivateKey
from mandates.signature import sign_document
from sim.catalogue import Catalogue, running_catalogue
from sim.memory import MemoryUnavailable
from sim.withdrawn import keep_asking
from tests.household import found_household, running_hub, running_kitchen, until
from tests.sim.conftest import START, FakeClock

Benches = Callable[..., Any]


class Feeds:
    """A catalogue as a device hears of it: over its hub."""

    def __init__(self) -> None:
        self.catalogue = Catalogue("http://127.0.0.1:1", FakeClock())

    def recall(self, name: str, *targets: dict[str, Any], **members: Any) -> dict[str, Any]:
        return self.catalogue.recall(name, *targets, **members)

    @property
    def keys(self) -> bytes:
        return msgspec.json.encode({"keys": [self.catalogue.record]})


def feed(*recalls: Any) -> bytes:
    return json.dumps(list(recalls)).encode()


SOUP = "cw:cookwala.ai:example-lentil-soup"


async def test_a_recalled_revision_is_refused_by_any_name_before_anything_is_fetched(bench: Benches) -> None:
    one, feeds = bench(), Feeds()
    one.appliance.learn_recalls(feed(feeds.recall("rc-1", {"ref": SOUP})), feeds.keys)
    status = await one.start("lentil-soup")
    assert (status.state, status.refusal.reason) == ("refused", "recipe_recalled")
    assert one.fetched == []
    # Under another name it is found by what the recipe itself is called.
    asked = {**json.loads(one.request("lentil-soup", 2)), "recipe": "cw:elsewhere.example:best-soup"}
    status = await one.appliance.start(json.dumps(asked).encode())
    assert status.refusal.reason == "recipe_recalled"
    assert (await one.start("salata-baladi", 3)).state == "accepted"


async def test_a_recall_survives_a_reboot_and_every_later_feed(bench: Benches) -> None:
    one, feeds = bench(), Feeds()
    good = feeds.recall("rc-1", {"ref": SOUP})
    one.appliance.learn_recalls(feed(good), feeds.keys)
    for later in (
        feed(),
        feed({**good, "action": "warn"}),
        feed(feeds.recall("rc-1", {"ref": "x"}, action="warn")),
    ):
        one.appliance.learn_recalls(later, feeds.keys)
        assert (await one.start("lentil-soup", 5)).refusal.reason == "recipe_recalled"
    one.boot()
    assert (await one.start("lentil-soup", 6)).refusal.reason == "recipe_recalled"


async def test_a_forged_recall_or_another_key_under_a_known_kid_is_not_believed(bench: Benches) -> None:
    one, feeds = bench(), Feeds()
    forged = {**feeds.recall("rc-1", {"ref": "x"}), "targets": [{"ref": SOUP}]}
    one.appliance.learn_recalls(feed(forged, feeds.recall("rc-2", {"ref": "other"})), feeds.keys)
    assert (await one.start("lentil-soup")).state == "accepted"
    thief = PrivateKey.from_seed(b"t" * 32, kid=feeds.catalogue.key.kid)
    record = thief.record(actor=feeds.catalogue.base, valid_from=START - timedelta(days=9))
    plain = {name: value for name, value in feeds.recall("rc-3", {"ref": "y"}).items() if name != "signature"}
    stolen = sign_document(plain, thief, signed_at=START)
    one.appliance.learn_recalls(feed(stolen), msgspec.json.encode({"keys": [record]}))
    assert document_hash(stolen) not in one.memory.recalls()


@pytest.mark.parametrize("raw", [b"", b"{}", b"[", b"[5]"])
async def test_a_feed_that_is_none_changes_nothing(bench: Benches, raw: bytes) -> None:
    one, feeds = bench(), Feeds()
    for pair in ((raw, feeds.keys), (feed(), raw)):
        try:
            one.appliance.learn_recalls(*pair)
        except FeedError:
            pass
        assert one.memory.recalls() == {}
    assert (await one.start("lentil-soup")).state == "accepted"


@pytest.mark.parametrize(
    ("action", "state"),
    [("block_and_stop_running", "stopped"), ("block", "running"), ("warn", "running")],
)
async def test_what_cooks_is_stopped_the_moment_the_device_hears_of_it(
    bench: Benches, action: str, state: str
) -> None:
    one, feeds = bench(), Feeds()
    started = await one.start("lentil-soup")
    one.turn_to_step(started.id, "n4")
    recall = feeds.recall(
        "rc-1", {"ref": SOUP, "hash": document_hash(one.samples["recipes"]["lentil-soup"])}, action=action
    )
    one.appliance.learn_recalls(feed(recall), feeds.keys)
    if state == "stopped":
        assert one.appliance.heat_w() == 0
        one.turn(5)
    assert one.appliance.status(started.id).state == state


async def test_asking_goes_on_through_every_trouble() -> None:
    clock, asked = FakeClock(), []
    troubles: list[Exception] = [ConnectionError("no hub"), FeedError("none"), MemoryUnavailable("full")]

    async def ask() -> tuple[bytes, bytes]:
        asked.append(clock.seconds)
        if len(asked) <= len(troubles):
            raise troubles[len(asked) - 1]
        return b"[]", b"{}"

    told = anyio.Event()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(lambda: keep_asking(ask, lambda *_: told.set(), clock, 60.0))
        for _ in range(4):
            await anyio.wait_all_tasks_blocked()
            clock.turn(clock.seconds + 60)
        with anyio.fail_after(5):
            await told.wait()
        tasks.cancel_scope.cancel()
    assert [later - first for first, later in itertools.pairwise(asked)][:3] == [60, 60, 60]


# --- Allergens ---------------------------------------------------------------------------------------------


def changed(one: Any, recipe: str, **more: Any) -> str:
    """Put a changed sample recipe where the device fetches; its hash."""
    copy = json.loads(json.dumps(one.samples["recipes"][recipe]))
    copy.pop("hash", None)
    copy["safety"]["allergens"].update(more.pop("declared", {}))
    copy["ingredients"][0].update(more)
    hashed = document_hash(copy)
    one.recipes[hashed] = json.dumps(copy).encode()
    return hashed


OFFER = [{"ingredientId": "cw.ing.olive_oil"}]
CASES: tuple[tuple[str, dict[str, Any], list[str], bool], ...] = (
    ("declared", {"declared": {"eu14": ["milk"]}}, ["milk"], True),
    ("may contain", {"declared": {"mayContain": ["sesame"]}}, ["sesame"], True),
    ("an ingredient's own", {"allergens": ["celery"]}, ["celery"], True),
    ("by nature", {"ingredientId": "cw.ing.butter"}, ["milk"], True),
    ("a substitute is offered", {"allergens": ["milk"], "substitutions": OFFER}, ["milk"], True),
    ("a name nobody knows", {}, ["moonlight"], True),
    ("another allergen", {"declared": {"eu14": ["milk"]}}, ["fish"], False),
    ("no block", {"declared": {"eu14": ["milk"]}}, [], False),
)


@pytest.mark.parametrize(
    ("change", "blocks", "refused"), [case[1:] for case in CASES], ids=[c[0] for c in CASES]
)
async def test_the_device_refuses_a_blocked_allergen_itself(
    bench: Benches, change: dict[str, Any], blocks: list[str], refused: bool
) -> None:
    one = bench()
    hashed = changed(one, "lentil-soup", **change)
    status = await one.start("lentil-soup", recipeHash=hashed, allergenBlocks=blocks)
    assert status.state == ("refused" if refused else "accepted")
    assert not refused or status.refusal.reason == "allergen_block"


async def test_what_is_in_store_in_the_device_counts_also_after_a_reboot(bench: Benches) -> None:
    one = bench()
    one.appliance.put_in_store([InventoryItem(name="tahini", allergens=["sesame"])])
    (said,) = [event for event in one.said() if event["type"] == "cookwala.inventory.changed"]
    assert said["data"]["items"] == [{"name": "tahini", "allergens": ["sesame"]}]
    for number in (1, 2):
        status = await one.start("lentil-soup", number, allergenBlocks=["sesame"])
        assert status.refusal.reason == "allergen_block"
        assert "tahini" in status.refusal.detail
        one.boot()
    one.appliance.put_in_store([])
    assert (await one.start("lentil-soup", 3, allergenBlocks=["sesame"])).state == "accepted"


# --- With a real hub and a real catalogue ------------------------------------------------------------


async def test_a_recall_comes_from_the_catalogue_over_the_hub_to_the_device(tmp_path: Path) -> None:
    async with running_catalogue(SystemClock()) as catalogue:
        household = found_household(
            tmp_path / "hub", catalogues=Catalogues(urls=(catalogue.base,), every_s=1.0)
        )
        kitchen = tmp_path / "kitchen"
        async with (
            running_hub(household),
            running_kitchen(kitchen, recall_interval_s=0.3) as urls,
        ):
            hashes = await household.add_recipes()
            await household.pair(kitchen, urls)
            catalogue.feed = [catalogue.recall("rc-1", {"ref": SOUP})]
            pairing = json.loads((kitchen / "demo-hob-robot.pairing.json").read_text())

            async def refused_by_the_device() -> bool:
                # Past the hub, straight to the device, with the hub's own token.
                body = household.request("lentil-soup", hashes["lentil-soup"])
                async with httpx.AsyncClient(verify=False, trust_env=False) as http:
                    answer = await http.post(
                        f"{urls['demo-hob-robot']}/v1/executions",
                        json=body,
                        headers={"Authorization": f"Bearer {pairing['hubToken']}"},
                    )
                    status = answer.json()
                    if status.get("state") not in ("refused", None):
                        await http.post(f"{urls['demo-hob-robot']}/v1/executions/{status['id']}/stop")
                    return bool(status.get("refusal", {}).get("reason") == "recipe_recalled")

            await until(refused_by_the_device, every_s=0.3)
