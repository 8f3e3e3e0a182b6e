-- Times are microseconds since 1970 UTC; bodies are the JSON of the value.
CREATE TABLE incidents (
    id        TEXT PRIMARY KEY,
    version   INTEGER NOT NULL,
    run       TEXT NOT NULL,
    service   TEXT NOT NULL,
    is_open   INTEGER NOT NULL,
    opened_at INTEGER NOT NULL,
    due_at    INTEGER,
    body      TEXT NOT NULL
);
CREATE INDEX incidents_due ON incidents (due_at, id) WHERE is_open = 1 AND due_at IS NOT NULL;
CREATE INDEX incidents_open ON incidents (opened_at, id) WHERE is_open = 1;
CREATE INDEX incidents_newest ON incidents (opened_at, id);
CREATE INDEX incidents_service ON incidents (service, opened_at, id);
CREATE INDEX incidents_run ON incidents (run, opened_at, id);

CREATE TABLE heads (
    key      TEXT PRIMARY KEY,
    incident TEXT NOT NULL
) WITHOUT ROWID;

CREATE TABLE signals (
    key      TEXT PRIMARY KEY,
    incident TEXT NOT NULL,
    at       INTEGER NOT NULL,
    body     TEXT NOT NULL
);
CREATE INDEX signals_of_incident ON signals (incident, at, key);

CREATE TABLE signal_counts (
    incident TEXT PRIMARY KEY,
    count    INTEGER NOT NULL
) WITHOUT ROWID;

CREATE TABLE timeline (
    incident TEXT NOT NULL,
    version  INTEGER NOT NULL,
    place    INTEGER NOT NULL,
    body     TEXT NOT NULL,
    PRIMARY KEY (incident, version, place)
) WITHOUT ROWID;

CREATE TABLE plans (
    id       TEXT PRIMARY KEY,
    incident TEXT NOT NULL,
    body     TEXT NOT NULL
);

CREATE TABLE outbox (
    number   INTEGER PRIMARY KEY AUTOINCREMENT,
    id       TEXT NOT NULL UNIQUE,
    incident TEXT NOT NULL,
    body     TEXT NOT NULL
);
CREATE INDEX outbox_of_incident ON outbox (incident, number);

-- The highest time ever committed: one row, so that a clock that steps back is noticed.
CREATE TABLE latest (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    at  INTEGER NOT NULL
);

CREATE TABLE cards (
    incident  TEXT NOT NULL,
    notifier  TEXT NOT NULL,
    reference TEXT NOT NULL,
    PRIMARY KEY (incident, notifier)
) WITHOUT ROWID;
