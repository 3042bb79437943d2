"""The devices together: capabilities as their union, limits at their strictest (ruling X6). Pure."""

from collections.abc import Iterable
from typing import Any, Final

import msgspec

from hub.directory import DeviceEntry
from safety.advice.limits import merge
from safety.device_documents import SafetyLimit, SafetyLimits

_DISCLAIMER: Final = "The strictest limit of any device here, by id. The devices enforce them."


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


def strictest_limits(devices: Iterable[DeviceEntry]) -> SafetyLimits | None:
    """A SafetyLimits document: of each limit's id the strictest that any device has; `None` without limits.

    Where two of one id are each stricter in their own way, both stay, the second as `<id>.2`.
    """
    of_id: dict[str, list[SafetyLimit]] = {}
    for device in devices:
        for limit in device.safety_limits.limits if device.safety_limits is not None else ():
            of_id.setdefault(limit.id, []).append(limit)
    strictest: list[SafetyLimit] = []
    for _, limits in sorted(of_id.items()):
        limits.sort(key=msgspec.json.encode)  # whichever device came first makes no difference
        merged = merge([_pack(limits)], pack_id="aboyeur-strictest", version="0.2.0", disclaimer=_DISCLAIMER)
        strictest += merged.limits if merged is not None else []
    return _pack(strictest) if strictest else None


def _pack(limits: list[SafetyLimit]) -> SafetyLimits:
    return SafetyLimits(
        core="0.2.0",
        kind="SafetyLimits",
        id="aboyeur-strictest",
        version="0.2.0",
        limits=limits,
        disclaimer=_DISCLAIMER,
    )
