-- What stands between an approval and an effect; times are microseconds since 1970 UTC.
CREATE TABLE claims (
    plan     TEXT PRIMARY KEY,
    incident TEXT NOT NULL,
    decision TEXT NOT NULL
) WITHOUT ROWID;

CREATE TABLE receipts (
    decision TEXT PRIMARY KEY,
    effect   TEXT NOT NULL,
    service  TEXT NOT NULL,
    at       INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX receipts_by_service ON receipts (service, at);
CREATE INDEX receipts_by_time ON receipts (at);

CREATE TABLE kill_switch (
    one    INTEGER PRIMARY KEY CHECK (one = 1),
    is_on  INTEGER NOT NULL CHECK (is_on IN (0, 1)),
    who    TEXT NOT NULL,
    why    TEXT NOT NULL,
    at     INTEGER
);

CREATE TABLE priors (
    effect   TEXT PRIMARY KEY,
    template TEXT NOT NULL,
    traffic  TEXT NOT NULL
) WITHOUT ROWID;

-- A lease that was given back keeps its row: the next token must be higher.
CREATE TABLE leases (
    name    TEXT PRIMARY KEY,
    holder  TEXT NOT NULL,
    token   INTEGER NOT NULL,
    ends_at INTEGER NOT NULL
) WITHOUT ROWID;

CREATE TABLE latest (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    at  INTEGER NOT NULL
);

CREATE TABLE audit (
    number   INTEGER PRIMARY KEY,
    at       INTEGER NOT NULL,
    kind     TEXT NOT NULL,
    incident TEXT NOT NULL,
    who      TEXT NOT NULL,
    body     TEXT NOT NULL,
    chain    TEXT NOT NULL
);
CREATE TRIGGER audit_is_never_changed BEFORE UPDATE ON audit BEGIN
    SELECT RAISE(ABORT, 'the record is append-only');
END;
CREATE TRIGGER audit_is_never_shortened BEFORE DELETE ON audit BEGIN
    SELECT RAISE(ABORT, 'the record is append-only');
END;
