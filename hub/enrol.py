"""A hub before it runs: its first owner, and what a broker must know of it."""

from dataclasses import dataclass, field
from pathlib import Path

from config.paths import DataFolder
from config.settings import Settings
from events.access_rights import HUB
from events.seams import Clock, Ids, SystemIds
from events.times import format_date_time
from hub import own_secrets
from hub.entries import PersonEnrolled
from hub.event_types import event_registry
from hub.keyfiles import make_key, read_record
from hub.projections.projector import Projector
from hub.recorder import Recording
from hub.records.log.head import HeadFile
from hub.store import migrations
from hub.store.database import DataFolderLock, open_reader, open_writer
from hub.store.writer import Failed, Journal, Transaction, commit_group, log_identity
from mandates.tokens import AGENT, token_hash


class NotAPerson(Exception):
    """Somebody else was to own a hub."""


@dataclass(frozen=True, slots=True)
class Enrolled:
    """A person who was just enrolled: the token, shown once, and the file of the private key."""

    token: str = field(repr=False)
    key_path: Path


def create(folder: Path, settings: Settings, owner_id: str, clock: Clock, ids: Ids) -> Enrolled:
    """Make the store and the secrets of a new hub in `folder`, with `owner_id` as its first owner.

    Raises:
        NotAPerson, FolderInUse, StoreUnusable, StoreFailed, KeyFileError, OSError
    """
    if owner_id.startswith(AGENT):
        raise NotAPerson(f"{owner_id} is an agent's id; an owner is a person, such as person:anna")
    files = DataFolder(folder)
    token = ids.secret()
    with DataFolderLock(folder):
        own_secrets.make(files, ids)
        # Whoever made her key before the hub keeps it.
        has_key = files.key(owner_id).exists()
        record = read_record(files, owner_id) if has_key else make_key(files, owner_id, clock, ids)
        entry = PersonEnrolled(id=owner_id, role="owner", token_hash=token_hash(token), keys=[record])
        projector = Projector(settings.kitchen, event_registry())

        def enrol(transaction: Transaction) -> None:
            Recording(transaction, projector).record(entry)

        connection = open_writer(files.database)
        try:
            migrations.migrate(connection, migrations.available())
            with HeadFile(files.head) as keeper:
                journal = Journal(log_identity(connection, ids), settings.kitchen, keeper)
                (outcome,) = commit_group(connection, journal, [enrol], format_date_time(clock.wall()))
            if isinstance(outcome, Failed):
                raise outcome.error
        finally:
            connection.close()
    return Enrolled(token, files.key(owner_id))


def broker_credentials(folder: Path) -> dict[str, str]:
    """Broker user to password hash, for the hub and every device; reads the store beside a running hub.

    Raises:
        SecretsMissing, StoreUnusable
    """
    files = DataFolder(folder)
    secrets = own_secrets.load(files)
    connection = open_reader(files.database)
    try:
        devices = dict(connection.execute("SELECT name, broker_hash FROM device ORDER BY name").fetchall())
    finally:
        connection.close()
    return {HUB: own_secrets.broker_hash(secrets.broker_password, SystemIds()), **devices}
