-- The event log and what surrounds it. Projections come with later migrations.

CREATE TABLE meta (
    name  TEXT NOT NULL PRIMARY KEY,
    value TEXT NOT NULL
) WITHOUT ROWID;

-- One tree and no second index: what the check reads is all there is to alter.
CREATE TABLE log (
    log_id         TEXT    NOT NULL,
    seq            INTEGER NOT NULL,
    prev           TEXT    NOT NULL,
    hash           TEXT    NOT NULL,
    kind           TEXT    NOT NULL,
    at             TEXT    NOT NULL,
    payload_digest TEXT    NOT NULL,
    kitchen        TEXT    NOT NULL,
    PRIMARY KEY (log_id, seq)
) WITHOUT ROWID;

-- Payloads lie apart so that one can be erased without breaking the chain: an erased one keeps its row with body NULL.
CREATE TABLE payload (
    log_id TEXT    NOT NULL,
    seq    INTEGER NOT NULL,
    body   BLOB,
    PRIMARY KEY (log_id, seq)
) WITHOUT ROWID;

CREATE TABLE cursor (
    name     TEXT    NOT NULL PRIMARY KEY,
    position INTEGER NOT NULL
) WITHOUT ROWID;

-- Rings: the newest rows only. ids are never given out twice, so "newer than" stays true after rows have gone.
CREATE TABLE quarantine (
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

CREATE TABLE refusal (
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

CREATE TABLE failed_login (
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

-- How many rows and bytes each ring holds now, so that no insert has to count them.
CREATE TABLE ring_fill (
    ring  TEXT    NOT NULL PRIMARY KEY,
    rows  INTEGER NOT NULL,
    bytes INTEGER NOT NULL
) WITHOUT ROWID;

-- How many there ever were; these outlive the rows.
CREATE TABLE ring_counter (
    ring    TEXT    NOT NULL,
    kitchen TEXT    NOT NULL,
    reason  TEXT    NOT NULL,
    count   INTEGER NOT NULL,
    PRIMARY KEY (ring, kitchen, reason)
) WITHOUT ROWID;
