-- Recalls that were verified once: they are only ever added to (a shorter feed un-recalls nothing).
CREATE TABLE recall (
    kitchen TEXT NOT NULL,
    hash TEXT NOT NULL,
    catalogue TEXT NOT NULL,
    document TEXT NOT NULL,
    signed_by TEXT NOT NULL,
    PRIMARY KEY (kitchen, hash)
) WITHOUT ROWID;

-- What is in store, as each device said last of each of its storages.
CREATE TABLE inventory (
    kitchen TEXT NOT NULL,
    device TEXT NOT NULL,
    storage TEXT NOT NULL,
    time TEXT NOT NULL,
    event TEXT NOT NULL,
    items TEXT NOT NULL,
    PRIMARY KEY (kitchen, device, storage)
) WITHOUT ROWID;

-- Incident reports that a person let go, and the catalogues that are to get each.
CREATE TABLE incident_report (
    kitchen TEXT NOT NULL,
    id TEXT NOT NULL,
    document TEXT NOT NULL,
    PRIMARY KEY (kitchen, id)
) WITHOUT ROWID;

CREATE TABLE incident_delivery (
    kitchen TEXT NOT NULL,
    id TEXT NOT NULL,
    catalogue TEXT NOT NULL,
    accepted INTEGER NOT NULL,
    PRIMARY KEY (kitchen, id, catalogue)
) WITHOUT ROWID;

-- A ring like the others: texts that tried to give orders.
CREATE TABLE incident (
    id          INTEGER PRIMARY KEY AUTOINCREMENT,
    kitchen     TEXT    NOT NULL,
    at          TEXT    NOT NULL,
    reason      TEXT    NOT NULL,
    source      TEXT    NOT NULL,
    detail      TEXT    NOT NULL,
    body        BLOB    NOT NULL,
    body_length INTEGER NOT NULL,
    size        INTEGER NOT NULL
);
