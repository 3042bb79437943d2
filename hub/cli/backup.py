"""`aboyeur backup`: copy a hub while it runs."""

from pathlib import Path

import click

from hub.cli.errors import REFUSED, CommandError
from hub.cli.invocation import Invocation
from hub.cli.options import as_json
from hub.cli.tables import print_json, print_line


@click.command("backup", short_help="Copy the hub, while it runs.")
@click.argument("target", type=click.Path(path_type=Path))
@click.option("--without-secrets", is_flag=True, help="Leave out tokens and keys; keep those elsewhere then.")
@click.option("--even-damaged", is_flag=True, help="Copy a log too that is not what it should be.")
@as_json
@click.pass_obj
def command(
    invocation: Invocation, *, target: Path, without_secrets: bool, even_damaged: bool, as_json: bool
) -> None:
    """Copy the hub in the data folder into the new folder TARGET: log, projections, settings, secrets.

    The hub may run meanwhile. The log is verified as it is copied. The backup holds secrets; keep it as
    carefully as the data folder.

    \b
    Example:
      aboyeur backup /mnt/usb/kitchen-2026-05-01
    """
    from hub.belongings import pack
    from hub.store.backup import BackupFailed, backup
    from hub.store.database import StoreUnusable

    invocation.existing()
    try:
        findings = backup(invocation.folder.database, target, even_damaged=even_damaged)
        packed = [] if without_secrets else pack(invocation.folder, target)
    except (BackupFailed, StoreUnusable) as error:
        raise CommandError(str(error), REFUSED) from None
    except OSError as error:
        raise CommandError(f"{error.filename or target}: {error.strerror}", REFUSED) from None
    if as_json:
        print_json({"target": str(target), "files": len(packed) + 2, "findings": findings})
    else:
        print_line(f"Copied the hub to {target} (store and {len(packed)} files of settings and secrets).")
    if findings:
        raise CommandError(f"the copied log is damaged in {len(findings)} places", REFUSED)
