"""Configuration for Mosquitto as the broker of a home: what it keeps, who may log in, who may say what.

Mosquitto's defaults lose confirmed messages when it is killed, keep only 1,000 for a hub that is away, and
let anybody with any login take over the hub's session by using its client id. The configuration written here
does not.
"""

import base64
import hashlib
import hmac
import os
import pwd
import re
import shutil
import tempfile
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from events.access_rights import HUB, kitchen_level

HASH_ITERATIONS = 1_000  # the secrets are 256 random bits: nothing to guess, so nothing to stretch
MOST_HASH_ITERATIONS = 1_000_000
SALT_BYTES = 12  # the only length that Mosquitto 2.0 reads
ITS_USER = "mosquitto"
"""The system user that Mosquitto becomes by itself when root starts it."""
MOST_MESSAGE_BYTES = 256 * 1024
MOST_QUEUED = 100_000
MOST_QUEUED_BYTES = 256 * 1024 * 1024
MOST_INFLIGHT = 1_000
MOST_INFLIGHT_BYTES = 16 * 1024 * 1024

_USER = re.compile(r"[a-z0-9][a-z0-9-]{0,63}")
_HOST = re.compile(r"[A-Za-z0-9.:_%-]{1,255}")
_UNPRINTABLE = re.compile(r"[\x00-\x1f\x7f]")


@dataclass(frozen=True, slots=True)
class TlsFiles:
    """PEM files of a listener: certificate chain and private key."""

    certificate: Path
    key: Path


@dataclass(frozen=True, slots=True)
class Listener:
    """An address Mosquitto listens on; plain TCP without `tls`."""

    host: str
    port: int
    tls: TlsFiles | None = None


def password_hash(secret: str, salt: bytes) -> str:
    """A secret as Mosquitto stores it: `$7$iterations$salt$hash`, PBKDF2 with HMAC-SHA-512.

    Args:
        secret: the password.
        salt: 12 random bytes, new for every hash.

    Raises:
        ValueError: the salt has another length, which Mosquitto would not read.
    """
    if len(salt) != SALT_BYTES:
        raise ValueError(f"the salt has {SALT_BYTES} bytes")
    digest = hashlib.pbkdf2_hmac("sha512", secret.encode(), salt, HASH_ITERATIONS)
    return f"$7${HASH_ITERATIONS}${base64.b64encode(salt).decode()}${base64.b64encode(digest).decode()}"


def verify_password(secret: str | bytes, stored: str) -> bool:
    """Whether `secret` is the one `stored` was made from; false also for a hash that cannot be read."""
    match stored.split("$"):
        case ["", "7", iterations, salt_text, digest_text] if iterations.isdecimal() and len(iterations) < 8:
            rounds = int(iterations)
        case _:
            return False
    try:
        salt = base64.b64decode(salt_text, validate=True)
        digest = base64.b64decode(digest_text, validate=True)
    except ValueError:
        return False
    if not 0 < rounds <= MOST_HASH_ITERATIONS or len(digest) != hashlib.sha512().digest_size:
        return False
    plain = secret.encode() if isinstance(secret, str) else secret
    return hmac.compare_digest(hashlib.pbkdf2_hmac("sha512", plain, salt, rounds), digest)


def access_list(kitchen: str, devices: Collection[str], readers: Collection[str] = ()) -> str:
    """The access list that gives what `access_rights.Rights` gives.

    Every user has lines of its own: Mosquitto applies `pattern` lines to all users, readers too. A
    subscription that is too wide is answered with yes, but nothing comes through it that its user may not
    read.

    Raises:
        ValueError: a name is not a user name, or is used twice.
    """
    root = f"cookwala/{kitchen_level(kitchen)}"
    public = [f"topic read {root}/+/+", f"topic deny {root}/from/+", f"topic deny {root}/to/+"]
    lines = [
        "# Written by aboyeur; changes are overwritten.",
        f"user {HUB}",
        f"topic read {root}/from/+/#",
        f"topic read {root}/to/{HUB}/#",
        f"topic write {root}/to/+/#",
        f"topic readwrite {root}/+/+",
        *public[1:],
    ]
    names = [*devices, *readers]
    if len({HUB, *names}) != len(names) + 1:
        raise ValueError("a broker user name is given twice")
    for name in names:
        if _USER.fullmatch(name) is None:
            raise ValueError(f"not a broker user name: {name!r}")
    for device in sorted(devices):
        lines += [
            "",
            f"user {device}",
            f"topic write {root}/from/{device}/#",
            f"topic read {root}/to/{device}/#",
            *public,
        ]
    for reader in sorted(readers):
        lines += ["", f"user {reader}", *public]
    return "\n".join(lines) + "\n"


def broker_settings(
    directory: Path, data_directory: Path, listeners: Sequence[Listener], run_as: str | None = None
) -> str:
    """The text of `mosquitto.conf`; see `write_configuration`."""
    if not listeners:
        raise ValueError("a broker needs a listener")
    lines = [
        "# Written by aboyeur; changes are overwritten.",
        "allow_anonymous false",
        f"password_file {_path(directory / 'passwd')}",
        f"acl_file {_path(directory / 'acl')}",
        "# saved in the turn that confirms it, just after the confirmation; the default is every half hour",
        "persistence true",
        f"persistence_location {_path(data_directory)}/",
        "autosave_on_changes true",
        "autosave_interval 1",
        "persistent_client_expiration 14d",
        f"max_queued_messages {MOST_QUEUED}",
        f"max_queued_bytes {MOST_QUEUED_BYTES}",
        f"max_inflight_messages {MOST_INFLIGHT}",
        f"max_inflight_bytes {MOST_INFLIGHT_BYTES}",
        f"message_size_limit {MOST_MESSAGE_BYTES}",
        "# a heartbeat that waited in a queue would arrive looking fresh",
        "queue_qos0_messages false",
        "set_tcp_nodelay true",
        "log_dest stderr",
        "log_type error",
        "log_type warning",
        "log_type notice",
    ]
    if run_as is not None:
        if _UNPRINTABLE.search(run_as) or " " in run_as:
            raise ValueError(f"not a system user: {run_as!r}")
        lines.append(f"user {run_as}")
    for listener in listeners:
        if _HOST.fullmatch(listener.host) is None or not 0 < listener.port < 65536:
            raise ValueError(f"not an address to listen on: {listener.host!r}, port {listener.port}")
        lines += [
            "",
            f"listener {listener.port} {listener.host}",
            "# for this listener: the login decides who a client is, else any could push the hub out",
            "use_username_as_clientid true",
        ]
        if listener.tls is not None:
            lines += [
                f"certfile {_path(listener.tls.certificate)}",
                f"keyfile {_path(listener.tls.key)}",
                "tls_version tlsv1.2",
            ]
    return "\n".join(lines) + "\n"


def user_for(*folders: Path) -> str | None:
    """The system user to run Mosquitto as, so that what is written into `folders` now can be read then.

    None where the caller is not root: Mosquitto then stays who starts it. For root it is the user
    `mosquitto`, or root itself where that user is missing or cannot get to one of the folders.
    """
    if os.geteuid() != 0:
        return None
    try:
        entry = pwd.getpwnam(ITS_USER)
    except KeyError:
        return "root"
    groups = frozenset(os.getgrouplist(ITS_USER, entry.pw_gid))
    return ITS_USER if all(_may_enter(folder, entry.pw_uid, groups) for folder in folders) else "root"


def _may_enter(folder: Path, user: int, groups: Collection[int]) -> bool:
    """Whether that user gets into `folder`, as far as the folders on the way there exist."""
    place = folder.resolve()
    for step in (place, *place.parents):
        try:
            found = step.stat()
        except FileNotFoundError:
            continue
        shift = 6 if found.st_uid == user else 3 if found.st_gid in groups else 0
        if not found.st_mode >> shift & 0o1:
            return False
    return True


def write_configuration(
    directory: Path,
    *,
    kitchen: str,
    data_directory: Path,
    listeners: Sequence[Listener],
    passwords: Mapping[str, str],
    devices: Collection[str],
    readers: Collection[str] = (),
    run_as: str | None = None,
) -> Path:
    """Write `mosquitto.conf`, `acl` and `passwd` into `directory`, each replaced as a whole.

    Mosquitto reads `acl` and `passwd` again on SIGHUP; the rest needs a restart. Started as root it becomes
    the system user `mosquitto` (or `run_as`), and that user must be able to read the files and to write
    `data_directory`: written by root with `run_as`, all of them are given to it; otherwise whoever installs
    them does that.

    Args:
        directory: where the three files go; made if missing.
        kitchen: the kitchen's id.
        data_directory: where Mosquitto keeps sessions and messages; made if missing.
        listeners: at least one.
        passwords: broker user to `password_hash`; for the hub, every device and every reader.
        devices: device names.
        readers: names of users that only read the public layout.
        run_as: system user that Mosquitto runs as when started by root; None = its own default.

    Returns:
        The path of `mosquitto.conf`.

    Raises:
        ValueError: names, addresses or hashes that Mosquitto would misread, or users without a password.
    """
    expected = {HUB, *devices, *readers}
    if set(passwords) != expected:
        raise ValueError(f"passwords missing or too many: {sorted(expected.symmetric_difference(passwords))}")
    for user, stored in passwords.items():
        if not stored.startswith("$7$") or _UNPRINTABLE.search(stored) or ":" in stored:
            raise ValueError(f"the password of {user} is not hashed")
    rights = access_list(kitchen, devices, readers)
    settings = broker_settings(directory, data_directory, listeners, run_as)
    owner = run_as if os.geteuid() == 0 else None
    made = not directory.exists()
    directory.mkdir(parents=True, exist_ok=True)
    data_directory.mkdir(parents=True, exist_ok=True, mode=0o700)
    if owner is not None:
        if made:
            shutil.chown(directory, owner)
        shutil.chown(data_directory, owner)
    logins = "".join(f"{user}:{stored}\n" for user, stored in sorted(passwords.items()))
    _replace(directory / "passwd", logins, owner)
    _replace(directory / "acl", rights, owner)
    _replace(directory / "mosquitto.conf", settings, owner)
    return directory / "mosquitto.conf"


def _path(path: Path) -> str:
    text = str(path.absolute())
    if _UNPRINTABLE.search(text) or text != text.strip():
        raise ValueError(f"a path that Mosquitto would misread: {text!r}")
    return text


def _replace(path: Path, text: str, owner: str | None) -> None:
    """Put a file in place whole, readable by its owner alone from its first byte."""
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        if owner is not None:
            shutil.chown(name, owner)
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
