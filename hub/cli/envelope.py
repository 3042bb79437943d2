"""`aboyeur envelope`: what must hold during an operation, and whether a trace held it."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hub.cli.errors import REFUSED, USAGE, CommandError
from hub.cli.options import as_json
from hub.cli.tables import plain, print_json, print_line
from hub.cli.vocabularies import chosen_vocabulary, vocabulary_file

if TYPE_CHECKING:
    from safety.advice.envelope_check import TraceReading
    from safety.advice.figures import Asked
    from safety.vocabulary import Band, Envelope

_FILE = click.Path(dir_okay=False, path_type=Path)


@click.command("envelope", short_help="Show an operation's envelope, or hold a trace against it.")
@click.argument("op")
@click.argument("trace", required=False, type=_FILE)
@click.option("--altitude", "altitude_m", type=float, default=0.0, metavar="M", help="Height of the kitchen.")
@click.option("--target", type=float, metavar="C", help="What the recipe wants, in °C.")
@click.option("--tolerance", type=click.FloatRange(min=0), metavar="K", help="How far from it still fits.")
@vocabulary_file
@as_json
@click.pass_context
def command(
    context: click.Context,
    *,
    op: str,
    trace: Path | None,
    altitude_m: float,
    target: float | None,
    tolerance: float | None,
    vocabulary: Path | None,
    as_json: bool,
) -> None:
    """Show the envelope of OP (deep_fry, or cw.op.deep_fry), or hold the readings in a file against it.

    TRACE is a list of readings {"t": seconds, "tempC": °C}, or {"readings": [...], "target": {"value": °C,
    "tolerance": K}}; a reading may give "pressureKPa" too. Exit code 1 when the trace did not hold it.

    \b
    Examples:
      aboyeur envelope simmer
      aboyeur envelope boil --altitude 2400
      aboyeur envelope simmer trace.json --target 94 --tolerance 3
    """
    from safety.advice.altitude import check_altitude
    from safety.advice.envelope_check import check_trace
    from safety.advice.figures import Asked

    name = op if "." in op else f"cw.op.{op}"
    try:
        check_altitude(altitude_m)
    except ValueError as error:
        raise CommandError(str(error), USAGE) from None
    if tolerance is not None and target is None:
        raise CommandError("--tolerance needs --target", USAGE)
    envelope, read_as = _envelope(name, vocabulary)
    if trace is None:
        if target is not None:
            raise CommandError("--target needs a TRACE", USAGE)
        _show(name, read_as, envelope, altitude_m, as_json)
        return
    readings, wanted = _trace(trace)
    if target is not None:
        wanted = Asked("target", target, tolerance)
    verdict = check_trace(envelope, readings, target=wanted, altitude_m=altitude_m)
    if as_json:
        print_json(
            {
                "op": read_as,
                "envelopeOk": verdict.envelope_ok,
                "targetOk": verdict.target_ok,
                "reason": verdict.reason,
            }
        )
    else:
        print_line(
            f"{verdict.reason}: envelope {_word(verdict.envelope_ok)}, target {_word(verdict.target_ok)}"
        )
    if verdict.reason != "ok":
        context.exit(REFUSED)


def _envelope(name: str, vocabulary: Path | None) -> "tuple[Envelope, str]":
    known = chosen_vocabulary(vocabulary)
    operation = known.operation(name)
    if operation is None:
        raise CommandError(f"{plain(name)} is no operation of vocabulary {known.version}", REFUSED)
    if operation.envelope is None:
        raise CommandError(f"{operation.id} is neither hot nor dangerous and has no envelope", REFUSED)
    return operation.envelope, operation.id


def _trace(path: Path) -> "tuple[list[TraceReading], Asked | None]":
    from events.documents import DocumentError, parse
    from hub.cli.documents import read_file

    try:
        document = parse(read_file(path))
    except DocumentError as error:
        raise CommandError(f"{path} is no trace: {error}", REFUSED) from None
    target = None
    if isinstance(document, dict):
        target = _target(document.get("target"), path)
        document = document.get("readings")
    if not isinstance(document, list) or not all(isinstance(entry, dict) for entry in document):
        raise CommandError(f"{path} is no trace: a trace is a list of readings", REFUSED)
    from safety.advice.envelope_check import TraceReading

    readings = [
        TraceReading(entry.get("t"), entry.get("tempC"), entry.get("pressureKPa")) for entry in document
    ]
    return readings, target


def _target(written: Any, path: Path) -> "Asked | None":
    from safety.advice.figures import Unreadable, figures_of

    if written is None:
        return None
    figures = figures_of({"target": written})
    if isinstance(figures, Unreadable) or len(figures.temperatures) != 1:
        why = figures.detail if isinstance(figures, Unreadable) else "its target is no temperature"
        raise CommandError(f"{path} is no trace: {why}", REFUSED)
    return figures.temperatures[0]


def _show(name: str, read_as: str, envelope: "Envelope", altitude_m: float, as_json: bool) -> None:
    import msgspec

    from safety.advice.altitude import band_at

    band = band_at(envelope, altitude_m)
    if as_json:
        told = msgspec.to_builtins(envelope)
        if band is not None:
            told["tempC"] = {"min": band.min, "max": band.max}
        print_json({"op": read_as, "altitudeM": altitude_m, "envelope": told})
        return
    replaced = "" if read_as == name else f" (read for {plain(name)}, which is deprecated)"
    print_line(f"{read_as}{replaced}")
    lines = [
        ("medium", envelope.medium),
        ("temperature", _span(band, "°C")),
        ("pressure", _span(envelope.pressure_kpa, "kPa")),
        ("stirring", envelope.agitation),
        ("lid", envelope.lid),
        ("attention", envelope.attention),
        ("unattended", "yes" if envelope.unattended else "no: a person must be there"),
        ("verified by", ", ".join(envelope.ladder)),
        ("hazards", ", ".join(envelope.hazards or ())),
    ]
    for label, value in lines:
        if value:
            print_line(f"  {label.ljust(12)} {value}")


def _span(band: "Band | None", unit: str) -> str | None:
    return None if band is None else f"{band.min:g} to {band.max:g} {unit}"


def _word(ok: bool | None) -> str:
    return {True: "kept", False: "not kept", None: "not judged"}[ok]
