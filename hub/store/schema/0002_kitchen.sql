-- The projections of a kitchen: what its event log says, folded. `aboyeur rebuild --check` compares them.
-- Every key carries the kitchen. No table holds the time or the place in the log at which an event arrived,
-- but for `seen` and `outbox`, which are indexes over the log.

CREATE TABLE person (
    kitchen TEXT NOT NULL,
    id TEXT NOT NULL,
    role TEXT NOT NULL,
    keys TEXT NOT NULL,
    PRIMARY KEY (kitchen, id)
) WITHOUT ROWID;

CREATE TABLE token (
    hash TEXT NOT NULL PRIMARY KEY,
    kitchen TEXT NOT NULL,
    actor TEXT NOT NULL,
    role TEXT NOT NULL,
    mandate TEXT
) WITHOUT ROWID;

CREATE TABLE mandate (
    kitchen TEXT NOT NULL,
    hash TEXT NOT NULL,
    principal TEXT NOT NULL,
    agent TEXT NOT NULL,
    expires TEXT NOT NULL,
    document TEXT NOT NULL,
    revoked INTEGER NOT NULL,
    PRIMARY KEY (kitchen, hash)
) WITHOUT ROWID;

CREATE TABLE recipe (
    kitchen TEXT NOT NULL,
    hash TEXT NOT NULL,
    id TEXT NOT NULL,
    document TEXT NOT NULL,
    PRIMARY KEY (kitchen, hash)
);
CREATE INDEX recipe_by_id ON recipe (kitchen, id);

CREATE TABLE device (
    kitchen TEXT NOT NULL,
    name TEXT NOT NULL,
    url TEXT NOT NULL,
    broker_hash TEXT NOT NULL,
    salt TEXT NOT NULL,
    keys TEXT NOT NULL,
    capabilities TEXT NOT NULL,
    safety_limits TEXT NOT NULL,
    life TEXT NOT NULL,
    PRIMARY KEY (kitchen, name)
);

CREATE TABLE execution (
    kitchen TEXT NOT NULL,
    id TEXT NOT NULL,
    open INTEGER NOT NULL,
    body TEXT NOT NULL,
    PRIMARY KEY (kitchen, id)
);
CREATE INDEX execution_open ON execution (kitchen, open, id);

CREATE TABLE attempt (
    kitchen TEXT NOT NULL,
    execution TEXT NOT NULL,
    number INTEGER NOT NULL,
    device TEXT NOT NULL,
    request TEXT NOT NULL,
    device_execution TEXT,
    phase TEXT NOT NULL,
    logged INTEGER NOT NULL,
    PRIMARY KEY (kitchen, execution, number)
) WITHOUT ROWID;
CREATE INDEX attempt_by_request ON attempt (kitchen, device, request);
CREATE INDEX attempt_by_device_execution ON attempt (kitchen, device, device_execution);
CREATE INDEX attempt_by_phase ON attempt (kitchen, device, phase, logged);

CREATE TABLE forward (
    kitchen TEXT NOT NULL,
    execution TEXT NOT NULL,
    attempt INTEGER NOT NULL,
    body TEXT NOT NULL,
    PRIMARY KEY (kitchen, execution, attempt)
) WITHOUT ROWID;

CREATE TABLE idempotency (
    kitchen TEXT NOT NULL,
    principal TEXT NOT NULL,
    key TEXT NOT NULL,
    body_hash TEXT NOT NULL,
    execution TEXT NOT NULL,
    answer TEXT NOT NULL,
    PRIMARY KEY (kitchen, principal, key)
) WITHOUT ROWID;

CREATE TABLE request (
    kitchen TEXT NOT NULL,
    id TEXT NOT NULL,
    principal TEXT NOT NULL,
    key TEXT NOT NULL,
    PRIMARY KEY (kitchen, id)
) WITHOUT ROWID;

CREATE TABLE subject (
    kitchen TEXT NOT NULL,
    device TEXT NOT NULL,
    subject TEXT NOT NULL,
    boot TEXT NOT NULL,
    seq INTEGER NOT NULL,
    request TEXT,
    open INTEGER NOT NULL,
    report TEXT NOT NULL,
    PRIMARY KEY (kitchen, device, subject)
) WITHOUT ROWID;

CREATE TABLE parked (
    kitchen TEXT NOT NULL,
    device TEXT NOT NULL,
    subject TEXT NOT NULL,
    boot TEXT NOT NULL,
    seq INTEGER NOT NULL,
    event TEXT NOT NULL,
    PRIMARY KEY (kitchen, device, subject, boot, seq)
) WITHOUT ROWID;

CREATE TABLE condition (
    kitchen TEXT NOT NULL,
    device TEXT NOT NULL,
    type TEXT NOT NULL,
    name TEXT NOT NULL,
    time TEXT NOT NULL,
    active INTEGER NOT NULL,
    event TEXT NOT NULL,
    PRIMARY KEY (kitchen, device, type, name)
) WITHOUT ROWID;

CREATE TABLE question (
    kitchen TEXT NOT NULL,
    device TEXT NOT NULL,
    subject TEXT NOT NULL,
    nonce TEXT NOT NULL,
    expires_at TEXT,
    why TEXT NOT NULL,
    PRIMARY KEY (kitchen, device, subject)
) WITHOUT ROWID;

CREATE TABLE device_log (
    kitchen TEXT NOT NULL,
    execution TEXT NOT NULL,
    attempt INTEGER NOT NULL,
    verdict TEXT NOT NULL,
    document TEXT,
    PRIMARY KEY (kitchen, execution, attempt)
);

CREATE TABLE seen (
    kitchen TEXT NOT NULL,
    device TEXT NOT NULL,
    id TEXT NOT NULL,
    seq INTEGER NOT NULL,
    PRIMARY KEY (kitchen, device, id)
) WITHOUT ROWID;
CREATE INDEX seen_by_seq ON seen (kitchen, seq);

CREATE TABLE outbox (
    position INTEGER PRIMARY KEY AUTOINCREMENT,
    kitchen TEXT NOT NULL,
    topic TEXT NOT NULL,
    retain INTEGER NOT NULL,
    body TEXT NOT NULL
);
