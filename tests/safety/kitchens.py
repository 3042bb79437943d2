"""Random recipes, devices and packs of limits made from the public samples: plain JSON, no product code."""

import copy
import random
from dataclasses import dataclass
from typing import Any

SENSORS = (
    "cw.sense.liquid_temp",
    "cw.sense.oil_temp",
    "cw.sense.pan_surface_temp",
    "cw.sense.core_temp",
    "cw.sense.oven_temp",
    "cw.sense.vision",
    "cw.sense.pressure",
    "cw.sense.boil_detect",
)
UNKNOWN_OPS = ("cw.op.levitate", "x-acme.op.zap")
LIMIT_KINDS = ("max_temp", "max_temp", "max_temp", "pressure", "pressure", "min_core_temp", "unattended")


@dataclass
class Case:
    """One question to a dry run."""

    recipe: dict[str, Any]
    device: dict[str, Any]
    limits: dict[str, Any] | None
    human_present: bool
    allow_model: bool


def case(draw: random.Random, samples: dict[str, Any]) -> Case:
    ops = samples["ops"]
    recipe = copy.deepcopy(draw.choice(list(samples["recipes"].values())))
    nodes = recipe["process"]["nodes"]
    picked = draw.sample(nodes, k=min(len(nodes), draw.randint(1, 3)))
    picked = [copy.deepcopy(node) for node in picked]
    for node in picked:
        if draw.random() < 0.6:
            mutate(node, draw, ops)
    recipe["process"] = {"nodes": picked}
    device = copy.deepcopy(draw.choice(list(samples["devices"].values())))
    able = device["capabilities"]
    if draw.random() < 0.75:
        declared = {node["op"] for node in picked}
        if draw.random() < 0.25:
            declared.discard(draw.choice(sorted(declared)))
        able["ops"] = [{"op": op} for op in sorted(declared)]
    if draw.random() < 0.7:
        able["sensors"] = [sensor(draw) for _ in range(draw.randint(0, 4))]
    return Case(
        recipe,
        device,
        pack(draw, samples, picked),
        human_present=draw.random() < 0.65,
        allow_model=draw.random() < 0.6,
    )


def sensor(draw: random.Random) -> dict[str, Any]:
    made: dict[str, Any] = {"sensor": draw.choice(SENSORS)}
    if draw.random() < 0.2:
        made["state"] = draw.choice(["ok", "degraded", "fault", "unknown"])
    if draw.random() < 0.2:
        made["calibration"] = {"validUntil": draw.choice(["2020-01-01T00:00:00Z", "2099-01-01T00:00:00Z"])}
    if draw.random() < 0.2:
        made["visionCues"] = ["cw.sense.bubble_vision"]
    return made


def mutate(node: dict[str, Any], draw: random.Random, ops: dict[str, Any]) -> None:
    params = node.setdefault("params", {})
    band = (ops.get(node["op"], {}).get("envelope") or {}).get("tempC", {"min": 20, "max": 90})
    for _ in range(draw.randint(1, 2)):
        match draw.randint(0, 9):
            case 0 | 1:
                every = [*sorted(ops), *["cw.op.deep_fry"] * 12, *UNKNOWN_OPS, *UNKNOWN_OPS]
                node["op"] = draw.choice(every)
            case 2:
                params["tempC"] = figure(draw, band)
            case 3:
                params["oilTempC"] = figure(draw, band)
            case 4:
                params["target"] = {
                    "value": figure(draw, band),
                    "unit": draw.choice(["degC", "degC", "degC", "C", "kPa", "g", "degF"]),
                    "sensor": draw.choice(SENSORS),
                    "tolerance": draw.choice([0, 2, 5, 20]),
                }
            case 5:
                params["heat"] = draw.choice(
                    ["very_low", "low", "medium", "medium_high", "high", "max", "warm", 3]
                )
            case 6:
                params["pressureKPa"] = draw.choice([30, 50, 75, 100, 100.5, 120, "80", None])
            case 7:
                node["assignment"] = {"allowed": draw.choice([["human"], ["robot"], ["appliance"], ["any"]])}
            case 8:
                node.setdefault("until", {})["onSensorMissing"] = draw.choice(
                    ["estimate", "time", "human", "refuse"]
                )
            case _:
                params.pop("target", None)


def figure(draw: random.Random, band: dict[str, Any]) -> Any:
    low, high = band["min"], band["max"]
    if draw.random() < 0.03:
        return draw.choice(["hot", True, None])
    if draw.random() < 0.7:
        return round(draw.uniform(low, high), 1)
    return draw.choice([low, high, low - 0.5, high + 0.5, high + 40, -300])


def pack(draw: random.Random, samples: dict[str, Any], nodes: list[dict[str, Any]]) -> dict[str, Any] | None:
    roll = draw.random()
    if roll < 0.25:
        return None
    whole: dict[str, Any] = copy.deepcopy(samples["safetyLimits"])
    if roll < 0.4:
        return whole
    whole["limits"] = [limit(draw, place, nodes) for place in range(draw.randint(1, 2))]
    return whole


def limit(draw: random.Random, place: int, nodes: list[dict[str, Any]]) -> dict[str, Any]:
    kind = draw.choice(LIMIT_KINDS)
    made: dict[str, Any] = {"id": f"l{place}", "kind": kind, "action": "cut_heat", "source": "a test"}
    if draw.random() < 0.95:
        figures = {
            "max_temp": (40, 200),
            "pressure": (20, 110),
            "min_core_temp": (55, 80),
            "unattended": (0, 1),
        }
        made["min" if kind == "min_core_temp" else "max"] = round(draw.uniform(*figures[kind]), 1)
    if kind != "unattended":
        made["unit"] = "kPa" if kind == "pressure" else "degC"
    scope: dict[str, Any] = {}
    if draw.random() < 0.6:
        scope["ops"] = [draw.choice(nodes)["op"]]
    if draw.random() < 0.35:
        scope["medium"] = draw.choice(["oil", "water", "pan_surface", "air", "product"])
    if draw.random() < 0.1:
        scope["foodClass"] = "poultry"
    if scope:
        made["appliesTo"] = scope
    return made
