"""Our own vectors of cooking: envelopes, ladders, units, sensor trust; the answers are worked out by hand."""

from typing import Any


def vector(kind: str, name: str, description: str, given: Any, expected: Any) -> dict[str, Any]:
    return {
        "id": f"own-{name}",
        "kind": kind,
        "description": description,
        "input": given,
        "expected": expected,
    }


def envelopes() -> list[dict[str, Any]]:
    def trace(op: str, temps: list[Any], altitude_m: float = 0, **more: Any) -> dict[str, Any]:
        readings = [{"t": 30 * place, "tempC": temp} for place, temp in enumerate(temps)]
        return {"op": op, "readings": readings, "altitudeM": altitude_m, **more}

    def is_(envelope: bool | None, target: bool | None, reason: str) -> dict[str, Any]:
        return {"envelopeOk": envelope, "targetOk": target, "reason": reason}

    poach, steam, boil, fry = "cw.op.poach", "cw.op.steam", "cw.op.boil", "cw.op.deep_fry"
    kept = {"value": 75, "tolerance": 2}
    cases: list[tuple[str, str, dict[str, Any], dict[str, Any]]] = [
        ("edges", "The ends of a band belong to it.", trace(poach, [20, 70, 85]), is_(True, None, "ok")),
        (
            "above",
            "A tenth of a degree above does not.",
            trace(poach, [70, 85.1]),
            is_(False, None, "left_envelope"),
        ),
        ("cold", "It never gets warm.", trace(poach, [20, 60]), is_(False, None, "never_reached_envelope")),
        (
            "nothing",
            "No reading shows nothing.",
            trace(poach, []),
            is_(False, None, "never_reached_envelope"),
        ),
        (
            "target-kept",
            "The target is reached and kept.",
            trace(poach, [71, 73, 77], target=kept),
            is_(True, True, "ok"),
        ),
        (
            "target-left",
            "A narrower target, once reached, is left again.",
            trace(poach, [71, 75, 78], target=kept),
            is_(False, False, "left_target"),
        ),
        (
            "target-missed",
            "The envelope holds, the target is never reached.",
            trace(poach, [71, 72], target=kept),
            is_(True, False, "never_reached_target"),
        ),
        (
            "target-bare",
            "A target without a tolerance is a figure to aim at, not a band to keep.",
            trace(poach, [71, 80], target={"value": 75}),
            is_(True, None, "ok"),
        ),
        (
            "steam-high-up",
            "Steam is cooler where the air is thinner: 95–102 °C becomes 85–92 °C at 3000 m.",
            trace(steam, [80, 90], 3000),
            is_(True, None, "ok"),
        ),
        (
            "oil-high-up",
            "Oil is not.",
            trace(fry, [150, 155], 3000),
            is_(False, None, "never_reached_envelope"),
        ),
        (
            "target-high-up",
            "At 1200 m a boil reaches 98 °C at most, which 100 ± 2 °C still tolerates.",
            trace(boil, [90, 98], 1200, target={"value": 100, "tolerance": 2}),
            is_(True, True, "ok"),
        ),
        (
            "target-too-high-up",
            "At 1500 m it does not.",
            trace(boil, [90, 96], 1500, target={"value": 100, "tolerance": 2}),
            is_(False, False, "target_outside_envelope"),
        ),
        ("text", "Text is no reading.", trace(poach, [70, "80"]), is_(False, None, "non_numeric_reading")),
        (
            "backwards",
            "A trace runs forward.",
            {"op": poach, "readings": [{"t": 9, "tempC": 80}, {"t": 8, "tempC": 80}]},
            is_(False, None, "out_of_order"),
        ),
        ("cut", "Cutting has no temperature.", trace("cw.op.cut", [20]), is_(None, None, "no_band")),
        (
            "pressure",
            "A pressure outside its band leaves the envelope as a temperature does.",
            {
                "op": "cw.op.pressure_cook",
                "readings": [{"t": 0, "pressureKPa": 80}, {"t": 9, "pressureKPa": 101}],
            },
            is_(False, None, "left_envelope"),
        ),
    ]
    ladders: list[tuple[str, str, dict[str, Any], str | None]] = [
        (
            "fry-person",
            "No person and no model stands in for the oil sensor.",
            {"op": fry, "sensors": ["cw.sense.pan_surface_temp"], "allowModel": True, "humanPresent": True},
            None,
        ),
        (
            "boil-second-sensor",
            "A lower sensor is above every fallback.",
            {"op": boil, "sensors": ["cw.sense.boil_detect"], "allowModel": True, "humanPresent": True},
            "cw.sense.boil_detect",
        ),
        (
            "simmer-person",
            "A recipe may ask for a person instead of an estimate.",
            {"op": "cw.op.simmer", "sensors": [], "humanPresent": True, "onSensorMissing": "human"},
            "human",
        ),
        (
            "simmer-refuse",
            "A recipe may let nothing stand in.",
            {"op": "cw.op.simmer", "sensors": [], "humanPresent": True, "onSensorMissing": "refuse"},
            None,
        ),
        (
            "reduce-time",
            "What may not run unattended never ends on time, whatever a recipe writes.",
            {
                "op": "cw.op.reduce",
                "sensors": [],
                "allowModel": False,
                "humanPresent": True,
                "onSensorMissing": "time",
            },
            None,
        ),
    ]
    return [
        *(
            vector("envelope", f"envelope-{name}", said, given, expected)
            for name, said, given, expected in cases
        ),
        *(
            vector("envelope", f"ladder-{name}", said, given, {"choice": choice})
            for name, said, given, choice in ladders
        ),
    ]


def units() -> list[dict[str, Any]]:
    cases: list[tuple[str, str, dict[str, Any], dict[str, Any]]] = [
        ("tsp", "3 tsp are a tbsp.", {"value": 3, "unit": "tsp", "to": "tbsp"}, {"value": 1}),
        ("cup", "A cup is 240 ml.", {"value": 0.5, "unit": "cup", "to": "ml"}, {"value": 120}),
        ("dash", "A dash is 0.6 ml.", {"value": 5, "unit": "dash", "to": "ml"}, {"value": 3}),
        ("pinch", "A pinch is 0.36 g.", {"value": 100, "unit": "pinch", "to": "kg"}, {"value": 0.036}),
        (
            "mass-to-volume",
            "300 g at 0.75 g/ml are 400 ml.",
            {"value": 300, "unit": "g", "to": "ml", "density": 0.75},
            {"value": 400},
        ),
        (
            "mass-without-density",
            "Nor does mass become volume by itself.",
            {"value": 300, "unit": "g", "to": "cup"},
            {"error": "needs_density"},
        ),
        (
            "no-use-of-density",
            "Within a kind a density changes nothing.",
            {"value": 2, "unit": "l", "to": "ml", "density": 0.5},
            {"value": 2000},
        ),
        ("kinds", "Grams are no seconds.", {"value": 1, "unit": "g", "to": "s"}, {"error": "other_kind"}),
        (
            "unknown",
            "A gill is no unit.",
            {"value": 1, "unit": "gill", "to": "ml"},
            {"error": "unknown_unit"},
        ),
        (
            "degF",
            "Nor is °F, on the wire.",
            {"value": 200, "unit": "degF", "to": "degC"},
            {"error": "unknown_unit"},
        ),
        (
            "density-0",
            "Nothing has no density.",
            {"value": 1, "unit": "g", "to": "ml", "density": 0},
            {"error": "bad_density"},
        ),
    ]
    quantities: list[tuple[str, dict[str, Any], bool]] = [
        ("relative", {"value": 5, "unit": "g", "tolerance": 0.1}, True),
        ("both", {"value": 5, "unit": "g", "tolerance": 0.1, "toleranceAbs": 1}, False),
        ("negative", {"value": -5, "unit": "g"}, False),
    ]
    return [
        *(vector("units", f"units-{name}", said, given, expected) for name, said, given, expected in cases),
        *(
            vector(
                "units",
                f"quantity-{name}",
                "A quantity, or none.",
                {"quantity": given},
                {"schemaValid": valid},
            )
            for name, given, valid in quantities
        ),
    ]


def sensor_trust() -> list[dict[str, Any]]:
    def trust(sensors: list[dict[str, Any]], op: str = "cw.op.deep_fry") -> dict[str, Any]:
        device = {"capabilities": {"sensors": sensors}}
        return {"capabilities": device, "op": op, "humanPresent": True, "now": "2026-10-05T12:00:00Z"}

    oil, liquid = "cw.sense.oil_temp", "cw.sense.liquid_temp"

    def until(text: str) -> list[dict[str, Any]]:
        return [{"sensor": oil, "calibration": {"validUntil": text}}]

    trusts: list[tuple[str, str, dict[str, Any], str | None]] = [
        ("last-instant", "It holds to its last instant.", trust(until("2026-10-05T14:00:00+02:00")), oil),
        ("over", "And no longer.", trust(until("2026-10-05T13:59:59+02:00")), None),
        ("no-offset", "A time without an offset is no time.", trust(until("2027-10-05T14:00:00")), None),
        (
            "unknown",
            "An unknown state counts for nothing.",
            trust([{"sensor": oil, "state": "unknown"}]),
            None,
        ),
        (
            "spare",
            "Of two, one that holds is enough.",
            trust([{"sensor": oil, "state": "fault"}, {"sensor": oil, "state": "ok"}]),
            oil,
        ),
        ("fall", "Without its sensor a simmer is estimated.", trust(until("x"), "cw.op.simmer"), "model"),
        (
            "camera",
            "A camera counts by what it can see.",
            trust([{"sensor": "cw.sense.vision", "visionCues": ["cw.sense.bubble_vision"]}], "cw.op.simmer"),
            "cw.sense.bubble_vision",
        ),
    ]

    def reads(*temps: Any, accuracy: Any = None) -> dict[str, Any]:
        names = [liquid, "x-acme.second", "x-acme.third"][: len(temps)]
        stated = {} if accuracy is None else {"accuracy": accuracy}
        return {
            "readings": [{"sensor": name, "tempC": temp} for name, temp in zip(names, temps, strict=True)],
            "sensors": [{"sensor": name, **stated} for name in names],
        }

    plausibilities: list[tuple[str, str, dict[str, Any], str, list[str]]] = [
        ("alone", "One sensor contradicts nobody.", reads(90), "ok", []),
        ("just", "As far apart as both may be off.", reads(90, 91, accuracy=0.5), "ok", []),
        (
            "apart",
            "A little further, and neither counts.",
            reads(90, 91.1, accuracy=0.5),
            "implausible",
            [liquid, "x-acme.second"],
        ),
        ("undeclared", "Without a stated accuracy two degrees each.", reads(90, 94), "ok", []),
        (
            "undeclared-apart",
            "And no more.",
            reads(90, 94.1),
            "implausible",
            [liquid, "x-acme.second"],
        ),
        (
            "third",
            "Whoever contradicts somebody does not count.",
            reads(90, 90, 99, accuracy=1),
            "implausible",
            [liquid, "x-acme.second", "x-acme.third"],
        ),
        ("yes", "True is no temperature.", reads(90, True), "non_numeric_reading", ["x-acme.second"]),
    ]
    return [
        *(
            vector("sensor_trust", f"trust-{name}", said, given, {"choice": choice})
            for name, said, given, choice in trusts
        ),
        *(
            vector(
                "plausibility",
                f"plausibility-{name}",
                said,
                given,
                {"ok": reason == "ok", "reason": reason, "demoted": demoted},
            )
            for name, said, given, reason, demoted in plausibilities
        ),
    ]
