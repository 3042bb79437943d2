"""The devices together: capabilities as their union, limits at their strictest (ruling X6). Pure."""

from collections.abc import Iterable
from typing import Any, Final

import msgspec

from hub.directory import DeviceEntry

_STRICTER_IS_LOWER: Final = frozenset({"max_temp", "pressure", "stop"})


def union_of_capabilities(kitchen: str, devices: Iterable[DeviceEntry]) -> dict[str, Any]:
    """A capabilities document of the hub: every operation and sensor, each with the devices that have it."""
    ops: dict[str, list[str]] = {}
    sensors: dict[str, list[str]] = {}
    for device in devices:
        if device.capabilities is None:
            continue
        for declared in device.capabilities.capabilities.ops or ():
            ops.setdefault(declared.op, []).append(device.name)
        for sensor in device.capabilities.capabilities.sensors or ():
            sensors.setdefault(sensor.sensor, []).append(device.name)
    return {
        "cookwala": "0.2.0",
        "actor": {"kind": "hub", "id": f"hub:{kitchen}", "vendor": "Aboyeur", "model": "Aboyeur"},
        "roles": ["hub"],
        "capabilities": {
            "ops": [
                {"op": op, "x-aboyeur-devices": sorted(set(owners))} for op, owners in sorted(ops.items())
            ],
            "sensors": [
                {"sensor": sensor, "x-aboyeur-devices": sorted(set(owners))}
                for sensor, owners in sorted(sensors.items())
            ],
        },
        "safety": {"certifications": [], "presenceDetection": False, "emergencyStop": "remote"},
        "interfaces": {},
    }


def strictest_limits(devices: Iterable[DeviceEntry]) -> dict[str, Any]:
    """A SafetyLimits document: for each limit's id the strictest that any device has."""
    strictest: dict[str, Any] = {}
    for device in devices:
        if device.safety_limits is None:
            continue
        for limit in device.safety_limits.limits:
            known = strictest.get(limit.id)
            if known is None or _stricter(limit, known):
                strictest[limit.id] = limit
    limits = [msgspec.to_builtins(limit) for _, limit in sorted(strictest.items())]
    return {
        "core": "0.2.0",
        "kind": "SafetyLimits",
        "id": "aboyeur-strictest",
        "version": "0.2.0",
        "limits": limits,
        "disclaimer": "The strictest limit of any device here, by id. The devices enforce them.",
    }


def _stricter(limit: Any, known: Any) -> bool:
    if limit.kind in _STRICTER_IS_LOWER and limit.max is not None:
        return known.max is None or limit.max < known.max
    if limit.min is not None:
        return known.min is None or limit.min > known.min
    return False
