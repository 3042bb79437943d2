"""The sensor ladder: how the end of a step is verified (Core §3)."""

from safety.documents import OnSensorMissing
from safety.vocabulary import FALLBACK_RUNGS, Envelope


def choose_rung(
    envelope: Envelope,
    sensors: frozenset[str],
    *,
    human_present: bool,
    allow_model: bool = True,
    on_sensor_missing: OnSensorMissing | None = None,
) -> str | None:
    """The first rung of the ladder that can be met, or `None` (Core §3, sensor ladder).

    `on_sensor_missing` narrows what may stand in for a sensor: `refuse` nothing, `estimate` a model, `time`
    a model or time, `human` a person. A person may be asked for instead of a model or of time, but never
    where the ladder lets nothing stand in for the sensor.
    """
    # Sensors stand above every fallback, whatever order a vocabulary writes them in.
    for rung in envelope.ladder:
        if rung in sensors and rung not in FALLBACK_RUNGS:
            return rung
    fallbacks = [rung for rung in envelope.ladder if rung in FALLBACK_RUNGS]
    if on_sensor_missing == "human":
        fallbacks = ["human"] if fallbacks else []
    elif on_sensor_missing is not None:
        allowed = {"refuse": (), "estimate": ("model",), "time": ("model", "time")}[on_sensor_missing]
        fallbacks = [rung for rung in fallbacks if rung in allowed]
    can_fall_back = {"model": allow_model, "time": True, "human": human_present}
    return next((rung for rung in fallbacks if can_fall_back[rung]), None)
