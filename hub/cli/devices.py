"""`aboyeur devices`: the appliances of a hub."""

from pathlib import Path

import click

from hub.cli.invocation import Invocation
from hub.cli.options import as_json, out_file
from hub.cli.tables import plain, print_json, print_line, print_table


@click.group("devices", short_help="Add, list, remove appliances.")
def command() -> None:
    """The appliances this hub may ask to cook."""


@command.command("add")
@click.argument("name")
@click.argument("url")
@out_file("Write the pairing document here, for the appliance, instead of printing it.")
@click.pass_obj
def add(invocation: Invocation, *, name: str, url: str, out: Path | None) -> None:
    """Register the appliance NAME that answers at URL, and get the document it pairs with.

    The hub reads the appliance and pins its keys and address. The pairing document holds the appliance's
    secrets; it is shown once.

    \b
    Example:
      aboyeur devices add demo-hob-robot http://192.168.1.20:9101 --out hob.json
    """
    import msgspec

    from hub.cli.once import check_place, hand_over

    check_place(out)
    with invocation.hub() as hub:
        pairing = hub.post("/v1/devices", {"name": name, "url": url})
    hand_over(
        msgspec.json.format(msgspec.json.encode(pairing), indent=2).decode(), out, f"the pairing of {name}"
    )


@command.command("list")
@as_json
@click.pass_obj
def list_devices(invocation: Invocation, *, as_json: bool) -> None:
    """Show every appliance, whether it is heard, and what it cooks.

    \b
    Example:
      aboyeur devices list
    """
    from hub.cli.client import warn_without_broker

    with invocation.hub() as hub:
        devices = hub.rows("/v1/devices", "devices")
        warn_without_broker(hub)
    if as_json:
        print_json({"devices": devices})
        return
    print_table(
        ("device", "heard", "cooks", "model", "address"),
        [
            (
                device.get("name"),
                device.get("liveness"),
                device.get("busyWith") or "-",
                device.get("model"),
                device.get("url"),
            )
            for device in devices
        ],
        whole=("cooks", "address"),
        empty="No appliances yet. Add one with: aboyeur devices add NAME URL --out FILE",
    )


@command.command("remove")
@click.argument("name")
@as_json
@click.pass_obj
def remove(invocation: Invocation, *, name: str, as_json: bool) -> None:
    """Forget the appliance NAME; its secrets open nothing any more.

    Refused while it has work: stop that first.

    \b
    Example:
      aboyeur devices remove demo-hob-robot
    """
    from hub.cli.client import segment

    with invocation.hub() as hub:
        hub.delete(f"/v1/devices/{segment(name)}")
    if as_json:
        print_json({"removed": name})
    else:
        print_line(f"Removed {plain(name)}.")
