"""A person's signing key as files in the data folder: the private key as PEM, its public record as JSON."""

import hashlib

from config.paths import DataFolder, write_private
from events.documents import DocumentError, read, write
from events.seams import Clock, Ids
from mandates.documents import KeyRecord
from mandates.keys import PrivateKey


class KeyFileError(Exception):
    """A key that cannot be made or read; the text says which file and why."""


def make_key(folder: DataFolder, actor: str, clock: Clock, ids: Ids) -> KeyRecord:
    """Draw an Ed25519 key for `actor`, write both files (mode 0600) and return the public record.

    Raises:
        KeyFileError: the actor has a key here already, or it cannot be written.
    """
    private, public = folder.key(actor), folder.public_key(actor)
    if private.exists():
        raise KeyFileError(f"{actor} has a key already: {private}")
    key = PrivateKey.from_seed(hashlib.sha256(ids.secret().encode()).digest(), kid=ids.new("key"))
    record = key.record(actor=actor, valid_from=clock.wall())
    try:
        # The record first: a key whose kid nobody knows could never be used.
        write_private(public, write(record))
        write_private(private, key.pem())
    except OSError as error:
        raise KeyFileError(f"{private} cannot be written: {error.strerror}") from None
    return record


def read_record(folder: DataFolder, actor: str) -> KeyRecord:
    """The public record of `actor`'s key.

    Raises:
        KeyFileError: there is none, or it cannot be read.
    """
    path = folder.public_key(actor)
    try:
        return read(KeyRecord, path.read_bytes())
    except FileNotFoundError:
        raise KeyFileError(f"{actor} has no key here ({path})") from None
    except OSError as error:
        raise KeyFileError(f"{path} cannot be read: {error.strerror}") from None
    except DocumentError as error:
        raise KeyFileError(f"{path} is no key record: {error}") from None


def read_key(folder: DataFolder, actor: str) -> PrivateKey:
    """`actor`'s private key, under the kid of its record.

    Raises:
        KeyFileError: there is none, it cannot be read, or the two files do not belong together.
    """
    record = read_record(folder, actor)
    path = folder.key(actor)
    try:
        key = PrivateKey.from_pem(path.read_bytes(), kid=record.kid)
    except OSError as error:
        raise KeyFileError(f"{path} cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise KeyFileError(f"{path}: {error}") from None
    if key.public_key() != record.public_key:
        raise KeyFileError(f"{path} and {folder.public_key(actor)} are not of one key")
    return key
