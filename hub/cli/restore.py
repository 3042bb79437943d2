"""`aboyeur restore`: put a backup back."""

from pathlib import Path

import click

from hub.cli.errors import REFUSED, CommandError
from hub.cli.invocation import Invocation
from hub.cli.options import as_json
from hub.cli.tables import print_json, print_line


@click.command("restore", short_help="Put a backup back.")
@click.argument("source", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--replace", is_flag=True, help="The data folder holds a hub already; its store is put aside.")
@click.option("--even-damaged", is_flag=True, help="Restore a log too that is not what it should be.")
@as_json
@click.pass_obj
def command(
    invocation: Invocation, *, source: Path, replace: bool, even_damaged: bool, as_json: bool
) -> None:
    """Put the backup in SOURCE into the data folder. The hub must not run.

    The whole log is verified first. With --replace the old store is kept in the folder, under
    before-restore-N; settings and secrets that are there stay as they are.

    \b
    Example:
      aboyeur --data /srv/kitchen restore /mnt/usb/kitchen-2026-05-01
    """
    from hub.belongings import unpack
    from hub.store.backup import BackupFailed, restore
    from hub.store.database import FolderInUse, StoreUnusable

    root = invocation.folder.root
    try:
        findings = restore(source, root, replace=replace, even_damaged=even_damaged)
        unpacked = unpack(source, invocation.folder)
    except FolderInUse as error:
        raise CommandError(f"{error}; stop that hub first", REFUSED) from None
    except (BackupFailed, StoreUnusable) as error:
        hint = "" if replace or "not empty" not in str(error) else "; --replace puts its store aside"
        raise CommandError(f"{error}{hint}", REFUSED) from None
    except OSError as error:
        raise CommandError(f"{error.filename or root}: {error.strerror}", REFUSED) from None
    if as_json:
        print_json({"data": str(root), "files": len(unpacked) + 2, "findings": findings})
    else:
        print_line(
            f"Restored the hub into {root} (store and {len(unpacked)} files of settings and secrets).\n"
            "Next: aboyeur serve; it reads every appliance before it does anything."
            if invocation.folder.settings.exists()
            else "The backup holds no secrets: put aboyeur.toml and secrets/ back, then aboyeur serve."
        )
    if findings:
        raise CommandError(f"the restored log is damaged in {len(findings)} places", REFUSED)
