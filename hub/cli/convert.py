"""`aboyeur convert`: a quantity in another unit, exactly."""

from fractions import Fraction
from typing import Final

import click

from hub.cli.errors import REFUSED, USAGE, CommandError
from hub.cli.options import as_json
from hub.cli.tables import plain, print_json, print_line

_DISPLAY: Final = frozenset({("degC", "degF"), ("degF", "degC")})


@click.command(
    "convert",
    short_help="Convert a quantity to another unit.",
    context_settings={"ignore_unknown_options": True},
)
@click.argument("value")
@click.argument("unit")
@click.argument("word", metavar="to", type=click.Choice(["to"]), expose_value=False)
@click.argument("target", metavar="UNIT")
@click.option("--density", metavar="G_PER_ML", help="Density in g/ml, needed between volume and mass.")
@as_json
def command(*, value: str, unit: str, target: str, density: str | None, as_json: bool) -> None:
    """Convert VALUE from one unit to another, exactly. Without a density a volume never becomes a mass.

    Documents hold °C only; degF is for people, and converts from and to degC here and nowhere else. Exit
    code 1 when there is no answer.

    \b
    Examples:
      aboyeur convert 2 cup to ml
      aboyeur convert 2 cup to g --density 0.53
      aboyeur convert 350 degF to degC
    """
    from hub.vocabularies import own_units
    from safety.units import (
        ConversionRefusal,
        celsius_to_fahrenheit,
        exact,
        fahrenheit_to_celsius,
    )

    try:
        amount = exact(value)
        thickness = None if density is None else exact(density)
    except ValueError as error:
        raise CommandError(plain(error), USAGE) from None
    if thickness is not None and thickness <= 0:
        raise CommandError(f"--density {plain(density)}: a density is above 0 g/ml", USAGE)
    if (unit, target) in _DISPLAY:
        shown = celsius_to_fahrenheit(amount) if unit == "degC" else fahrenheit_to_celsius(amount)
        _give(shown, target, about=False, as_json=as_json)
        return
    done = own_units().convert(amount, unit, target, density_g_per_ml=thickness)
    if isinstance(done, ConversionRefusal):
        raise CommandError(f"{done.reason}: {plain(done.detail)}", REFUSED)
    _give(done.value, done.unit, about=done.about, as_json=as_json)


def _give(value: Fraction, unit: str, *, about: bool, as_json: bool) -> None:
    written = _decimal(value)
    if as_json:
        print_json({"value": float(value), "unit": unit, "exact": written or str(value), "about": about})
        return
    rounded = written or f"{float(value):.6g}"
    notes = [] if written else [f"exactly {value}"]
    if about:
        notes.append("a pinch or a dash is only about so much")
    print_line(f"{rounded} {unit}" + (f"  ({'; '.join(notes)})" if notes else ""))


def _decimal(value: Fraction) -> str | None:
    """`value` as a decimal number that is exactly it and no longer than 20 digits after the point."""
    for places in range(21):
        scaled = value * 10**places
        if scaled.denominator == 1:
            sign, digits = ("-" if scaled < 0 else ""), str(abs(scaled.numerator)).rjust(places + 1, "0")
            whole, rest = digits[: len(digits) - places], digits[len(digits) - places :]
            return f"{sign}{whole}.{rest}" if rest else f"{sign}{whole}"
    return None
