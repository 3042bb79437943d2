"""The hub's own secrets: what it shows a broker and, derived from one key, what it shows each device.

Both lie in the data folder's `secrets`, readable by their owner alone (DESIGN §8).
"""

import base64
import hashlib
import hmac
from dataclasses import dataclass, field
from pathlib import Path

from config.paths import DataFolder, write_private
from events.mosquitto import SALT_BYTES, password_hash
from events.seams import Ids


class SecretsMissing(Exception):
    """The data folder has no secrets of a hub; the text says where they were looked for."""


@dataclass(frozen=True, slots=True)
class OwnSecrets:
    """The hub's secrets, in memory."""

    key: bytes = field(repr=False)
    broker_password: str = field(repr=False)

    def device_token(self, device: str, salt: str) -> str:
        """The token that the hub shows `device`; `salt` is new with each registration."""
        message = f"aboyeur device token\0{device}\0{salt}".encode()
        return base64.urlsafe_b64encode(hmac.digest(self.key, message, "sha256")).rstrip(b"=").decode()


def _key_file(folder: DataFolder) -> Path:
    return folder.secrets / "hub.secret"


def _broker_file(folder: DataFolder) -> Path:
    return folder.secrets / "hub.broker"


def make(folder: DataFolder, ids: Ids) -> OwnSecrets:
    """Draw the secrets of a new hub and write them."""
    secrets = OwnSecrets(hashlib.sha256(ids.secret().encode()).digest(), ids.secret())
    write_private(_key_file(folder), secrets.key.hex().encode() + b"\n")
    write_private(_broker_file(folder), secrets.broker_password.encode() + b"\n")
    return secrets


def load(folder: DataFolder) -> OwnSecrets:
    """The secrets of the hub in `folder`.

    Raises:
        SecretsMissing: there are none, or they cannot be read.
    """
    try:
        key = bytes.fromhex(_key_file(folder).read_text("ascii"))
        password = _broker_file(folder).read_text("ascii").strip()
    except (OSError, ValueError) as error:
        raise SecretsMissing(f"the hub's secrets in {folder.secrets} cannot be read: {error}") from None
    return OwnSecrets(key, password)


def broker_hash(secret: str, ids: Ids) -> str:
    """A broker password as brokers keep it."""
    return password_hash(secret, hashlib.sha256(ids.secret().encode()).digest()[:SALT_BYTES])
