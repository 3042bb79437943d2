"""What the height of a kitchen does to an envelope (Core §3)."""

from typing import Final

from safety.vocabulary import Band, Envelope

METRES_PER_DEGREE: Final = 300.0
"""Bands of water and steam lie one degree lower for this height."""
LOWEST_M: Final = -500.0
HIGHEST_M: Final = 9_000.0
"""Nobody lives, and so nobody cooks, below or above."""

_BOILING: Final = frozenset({"water", "steam"})


def check_altitude(altitude_m: float) -> float:
    """`altitude_m` itself.

    Raises:
        ValueError: no kitchen stands there.
    """
    if not LOWEST_M <= altitude_m <= HIGHEST_M:
        raise ValueError(f"an altitude is {LOWEST_M:g} to {HIGHEST_M:g} m")
    return altitude_m


def band_at(envelope: Envelope, altitude_m: float) -> Band | None:
    """The envelope's band in °C in a kitchen at `altitude_m`; None where it has none.

    Only water and steam that are open to the air boil earlier up there. Under pressure, in oil, in an oven or
    in a pan nothing changes.

    Raises:
        ValueError: no kitchen stands there.
    """
    check_altitude(altitude_m)
    band = envelope.temp_c
    if band is None or envelope.medium not in _BOILING:
        return band
    shift_c = altitude_m / METRES_PER_DEGREE
    return Band(min=band.min - shift_c, max=band.max - shift_c)
