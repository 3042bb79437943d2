"""The heat in one vessel, as a lump with a heater and losses.

Between two decisions of its controller a body follows C·dT/dt = P - h·(T - T_room), whose solution is known,
so its temperature is asked for at an instant and never ticked forward. All times here are physical seconds.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, Literal

Medium = Literal["water", "oil", "pan_surface", "air", "product", "ambient", "steam", "pressure", "radiant"]

ROOM_C: Final = 20.0
METRES_PER_DEGREE: Final = 300.0
"""Water boils one degree lower for this height of the kitchen (Core §3)."""


@dataclass(frozen=True, slots=True)
class Material:
    """What a medium is made of in this kitchen.

    Attributes:
        capacity_j_per_k: heat it stores, vessel included.
        loss_w_per_k: heat it gives to the room.
        heater_w: the most its heater gives.
        cooler_w: the most its cooler takes (0: only the room cools it).
        plateau_c: where boiling holds it at sea level; None where nothing boils.
    """

    capacity_j_per_k: float
    loss_w_per_k: float
    heater_w: float
    cooler_w: float = 0.0
    plateau_c: float | None = None


MATERIALS: Final[Mapping[Medium, Material]] = MappingProxyType(
    {
        "water": Material(6_500, 6.0, 2_400, plateau_c=100.0),
        "oil": Material(4_000, 7.0, 2_200),
        "pan_surface": Material(1_400, 6.0, 2_000),
        "air": Material(4_500, 8.0, 2_600),
        "product": Material(5_000, 5.0, 900, cooler_w=300.0, plateau_c=100.0),
        "ambient": Material(600, 2.0, 120, cooler_w=150.0),
        "steam": Material(3_000, 6.0, 2_000, plateau_c=100.0),
        "pressure": Material(6_500, 6.0, 2_400, plateau_c=121.0),
        "radiant": Material(1_500, 5.0, 2_200),
    }
)


@dataclass(frozen=True, slots=True)
class Body:
    """A medium since the last decision: at `since_s` it had `start_c`, and its controller aims at `aim_c`.

    `aim_c` None means no heat and no cooling: the body drifts to the room.
    """

    material: Material
    start_c: float
    since_s: float
    aim_c: float | None = None
    altitude_m: float = 0.0

    @property
    def ceiling_c(self) -> float:
        """The temperature that boiling does not let it pass."""
        plateau = self.material.plateau_c
        return math.inf if plateau is None else plateau - self.altitude_m / METRES_PER_DEGREE

    @property
    def tau_s(self) -> float:
        """The time in which a difference falls to 1/e."""
        return self.material.capacity_j_per_k / self.material.loss_w_per_k

    def temp_c(self, at_s: float) -> float:
        """Its temperature at `at_s` (not before `since_s`)."""
        passed = max(0.0, at_s - self.since_s)
        drive_c = self._drive_c()
        temp_c = drive_c + (self.start_c - drive_c) * math.exp(-passed / self.tau_s)
        if self.aim_c is not None:
            # The controller holds its aim from the moment it gets there.
            goal_c = min(self.aim_c, self.ceiling_c)
            rising = self.start_c <= goal_c
            temp_c = min(temp_c, goal_c) if rising else max(temp_c, goal_c)
        return min(temp_c, self.ceiling_c)

    def reaches_s(self, temp_c: float) -> float:
        """The first instant at which it has `temp_c`, from whichever side; infinity when it never does."""
        start_c = min(self.start_c, self.ceiling_c)
        if math.isclose(start_c, temp_c, abs_tol=1e-9):
            return self.since_s
        end_c = self.settles_c()
        if not min(start_c, end_c) <= temp_c <= max(start_c, end_c):
            return math.inf
        drive_c = self._drive_c()
        ratio = (temp_c - drive_c) / (start_c - drive_c)
        if ratio <= 0:
            return math.inf
        return self.since_s - self.tau_s * math.log(ratio)

    def settles_c(self) -> float:
        """Where it ends when nobody decides anything else."""
        drive_c = self._drive_c()
        if self.aim_c is None:
            return drive_c
        goal_c = min(self.aim_c, self.ceiling_c)
        return min(goal_c, drive_c) if self.start_c <= goal_c else max(goal_c, drive_c)

    def heat_w(self, at_s: float) -> float:
        """The heater's power at `at_s`; 0 while it drifts or cools."""
        if self.aim_c is None:
            return 0.0
        goal_c = min(self.aim_c, self.ceiling_c)
        temp_c = self.temp_c(at_s)
        if temp_c < goal_c - 1e-6:
            return self.material.heater_w
        if temp_c > goal_c + 1e-6:
            return 0.0
        return max(0.0, self.material.loss_w_per_k * (goal_c - ROOM_C))

    def aimed(self, aim_c: float | None, at_s: float) -> "Body":
        """The same body with another decision at `at_s`."""
        return Body(self.material, self.temp_c(at_s), at_s, aim_c, self.altitude_m)

    def _drive_c(self) -> float:
        """The temperature it is on its way to at the power now given."""
        if self.aim_c is None:
            return ROOM_C
        goal_c = min(self.aim_c, self.ceiling_c)
        if self.start_c <= goal_c:
            return ROOM_C + self.material.heater_w / self.material.loss_w_per_k
        # Too hot: the heater rests, and the cooler helps where there is one.
        return ROOM_C - self.material.cooler_w / self.material.loss_w_per_k


def poured(medium: Medium, parts: list[Body], at_s: float, altitude_m: float = 0.0) -> Body:
    """A vessel of `medium` into which hot `parts` have gone; the rest of it is as cold as the room."""
    material = MATERIALS[medium]
    share, heat = 0.0, 0.0
    for part in parts:
        weight = min(part.material.capacity_j_per_k, material.capacity_j_per_k)
        share += weight
        heat += weight * (part.temp_c(at_s) - ROOM_C)
    temp_c = ROOM_C + heat / max(material.capacity_j_per_k, share)
    body = Body(material, temp_c, at_s, None, altitude_m)
    return Body(material, min(temp_c, body.ceiling_c), at_s, None, altitude_m)
