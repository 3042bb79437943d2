"""`aboyeur broker`: a real MQTT broker for a home."""

import shutil
from pathlib import Path

import click

from hub.cli.errors import REFUSED, USAGE, CommandError
from hub.cli.invocation import Invocation
from hub.cli.options import as_json
from hub.cli.tables import print_json, print_line


@click.group("broker", short_help="Set up a real MQTT broker for a home.")
def command() -> None:
    """A real MQTT broker for a home, instead of the embedded one for trying out."""


@command.command("config")
@click.argument("directory", type=click.Path(file_okay=False, path_type=Path))
@click.option(
    "--listen", metavar="HOST", help="Address to listen on.  [default: broker.host of the settings]"
)
@click.option("--port", type=click.IntRange(1, 65535), help="[default: broker.port of the settings]")
@click.option("--tls-cert", type=click.Path(dir_okay=False, path_type=Path), help="Certificate chain (PEM).")
@click.option("--tls-key", type=click.Path(dir_okay=False, path_type=Path), help="Private key (PEM).")
@click.option(
    "--state",
    type=click.Path(file_okay=False, path_type=Path),
    help="Where Mosquitto keeps what it must not lose.  [default: DIRECTORY/state]",
)
@click.option(
    "--run-as",
    metavar="USER",
    help="System user that Mosquitto becomes when root starts it.  [default, for root: mosquitto, or root "
    "where that user cannot get to DIRECTORY]",
)
@as_json
@click.pass_obj
def config(
    invocation: Invocation,
    *,
    directory: Path,
    listen: str | None,
    port: int | None,
    tls_cert: Path | None,
    tls_key: Path | None,
    state: Path | None,
    run_as: str | None,
    as_json: bool,
) -> None:
    """Write Mosquitto's configuration, access list and passwords for this hub into DIRECTORY.

    Write it again after an appliance was added or removed, and send Mosquitto a SIGHUP.

    \b
    Example:
      aboyeur broker config /etc/mosquitto/kitchen --listen 192.168.1.5 \\
        --tls-cert /etc/ssl/kitchen.pem --tls-key /etc/ssl/kitchen.key
    """
    from config.settings import is_loopback
    from events.access_rights import HUB
    from events.mosquitto import Listener, TlsFiles, user_for, write_configuration
    from hub import enrol
    from hub.own_secrets import SecretsMissing
    from hub.store.database import StoreUnusable

    settings = invocation.existing()
    if (tls_cert is None) != (tls_key is None):
        raise CommandError("--tls-cert and --tls-key go together", USAGE)
    tls = TlsFiles(tls_cert, tls_key) if tls_cert is not None and tls_key is not None else None
    host = listen or settings.broker.host
    embedded = settings.broker.kind == "embedded"
    number = port or ((8883 if tls else 1883) if embedded else settings.broker.port)
    kept = state or directory / "state"
    user = run_as or user_for(directory, kept)
    try:
        passwords = enrol.broker_credentials(settings.data)
        written = write_configuration(
            directory,
            kitchen=settings.kitchen,
            data_directory=kept,
            listeners=[Listener(host, number, tls)],
            passwords=passwords,
            devices=[user for user in passwords if user != HUB],
            run_as=user,
        )
    except ValueError as error:
        raise CommandError(str(error), USAGE) from None
    except (SecretsMissing, StoreUnusable) as error:
        raise CommandError(str(error), REFUSED) from None
    except (OSError, LookupError) as error:
        raise CommandError(f"{directory}: {error}", REFUSED) from None
    if user == "root" and run_as is None:
        click.echo(
            "aboyeur: warning: Mosquitto will run as root: there is no user mosquitto here, or it cannot get "
            f"to {directory}; choose a folder it can enter, or --run-as USER",
            err=True,
        )
    if as_json:
        print_json({"configuration": str(written), "host": host, "port": number, "runAs": user})
    else:
        program = shutil.which("mosquitto") or "/usr/sbin/mosquitto"
        print_line(f"Wrote {written}, acl and passwd beside it.\nStart it: {program} -c {written}")
    if embedded and not as_json:
        reached = "127.0.0.1" if host in ("0.0.0.0", "::") else host  # noqa: S104 - compared, not bound
        print_line(
            f'Then let the hub use it, in {invocation.folder.settings}:\n  [broker]\n  kind = "mosquitto"\n'
            f'  host = "{reached}"\n  port = {number}'
        )
    if embedded and tls is not None and not as_json:
        print_line('  tls_ca = "the CA certificate that signed --tls-cert, in PEM form"')
    if tls is None and not is_loopback(host):
        click.echo("aboyeur: warning: without --tls-cert passwords travel readable in your network", err=True)
