"""What one call of the command line was given: where the hub is, who is asking."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Self
from urllib.parse import unquote

from config.paths import DataFolder
from hub.cli.errors import REFUSED, UNAUTHORIZED, USAGE, CommandError

if TYPE_CHECKING:
    from config.settings import Settings
    from hub.cli.client import HubClient


@dataclass(frozen=True, slots=True)
class Invocation:
    """The options before the command, and what follows from them. Nothing is read until it is asked for."""

    folder: DataFolder
    environ: Mapping[str, str]
    url: str | None = None
    token_file: Path | None = None
    person: str | None = None

    def with_kitchen(self, kitchen: str) -> Self:
        """The same, for the kitchen of that name."""
        return replace(self, environ={**self.environ, "ABOYEUR_KITCHEN": kitchen})

    def pause(self, seconds: float) -> None:
        """Wait between two questions to a hub."""
        import anyio

        from events.seams import SystemClock

        anyio.run(SystemClock().sleep, seconds)

    def settings(self) -> "Settings":
        """The settings of the hub in the data folder.

        Raises:
            CommandError: they cannot be used.
        """
        from config.settings import SettingsError, load

        try:
            return load(self.folder.root.absolute(), self.environ)
        except SettingsError as error:
            raise CommandError(str(error), USAGE) from None

    def existing(self) -> "Settings":
        """The settings of a hub that `init` has made.

        Raises:
            CommandError: there is none in the data folder.
        """
        if not self.folder.settings.exists():
            raise CommandError(
                f"no hub in {self.folder.root}; make one with: aboyeur init --owner person:YOUR-NAME", REFUSED
            )
        return self.settings()

    def hub(self, *, token: str | None = None, timeout_s: float = 30.0) -> "HubClient":
        """A client that speaks for the person who asks, or for whom `token` was given to.

        Raises:
            CommandError: no token is found, or the address is none.
        """
        from hub.cli.client import HubClient

        return HubClient(self.url or self.settings().url(), token or self.token(), timeout_s=timeout_s)

    def open_hub(self, *, timeout_s: float = 30.0) -> "HubClient":
        """A client without a token, for a stop: settings that cannot be read do not keep it from trying."""
        from config.settings import Settings
        from hub.cli.client import HubClient

        try:
            url = self.url or self.settings().url()
        except CommandError:
            url = Settings(data=self.folder.root).url()
        return HubClient(url, None, timeout_s=timeout_s)

    def token(self) -> str:
        """The token of who asks: --token-file, else ABOYEUR_TOKEN, else the person's in the data folder.

        Raises:
            CommandError: none is found, or several persons have one here and nobody said who asks.
        """
        if self.token_file is not None:
            return read_token(self.token_file)
        if self.environ.get("ABOYEUR_TOKEN"):
            return _checked(self.environ["ABOYEUR_TOKEN"], "ABOYEUR_TOKEN")
        return read_token(self.folder.token(self.whoami()))

    def whoami(self) -> str:
        """The person who asks: --as or ABOYEUR_PERSON, else the only one with a token in the data folder.

        Raises:
            CommandError: nobody, or several.
        """
        if self.person:
            return self.person
        known = sorted(unquote(path.stem) for path in self.folder.secrets.glob("*.token"))
        if len(known) == 1:
            return known[0]
        if known:
            raise CommandError(f"say who you are: --as one of {', '.join(known)}", USAGE)
        raise CommandError(
            f"no token: none in {self.folder.secrets}, and neither --token-file nor ABOYEUR_TOKEN is given; "
            "an owner makes you one with: aboyeur people add person:YOUR-NAME",
            UNAUTHORIZED,
        )


def read_token(path: Path) -> str:
    """The token in a file of its own.

    Raises:
        CommandError: missing, unreadable, readable by others, or not a token.
    """
    try:
        if path.stat().st_mode & 0o077 and path.stat().st_uid == os.getuid():
            raise CommandError(f"{path} can be read by others; close it with: chmod 600 {path}", UNAUTHORIZED)
        written = path.read_text("ascii")
    except FileNotFoundError:
        raise CommandError(f"no token file {path}", UNAUTHORIZED) from None
    except OSError as error:
        raise CommandError(f"{path} cannot be read: {error.strerror}", UNAUTHORIZED) from None
    except UnicodeDecodeError:
        raise CommandError(f"{path} does not hold a token", UNAUTHORIZED) from None
    return _checked(written, str(path))


def _checked(written: str, place: str) -> str:
    """The token that `place` holds; where it is none, only the place is named, as it may be half a secret."""
    token = written.strip()
    if not token or len(token) > 512 or not token.isascii() or not token.isprintable() or " " in token:
        raise CommandError(f"{place} does not hold a token", UNAUTHORIZED)
    return token
