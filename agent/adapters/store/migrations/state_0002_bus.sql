-- The durable queue: a message once, and a delivery of it for each subscription of its topic until it is acknowledged.
CREATE TABLE bus_subscriptions (
    name  TEXT PRIMARY KEY,
    topic TEXT NOT NULL
) WITHOUT ROWID;

CREATE TABLE bus_messages (
    number       INTEGER PRIMARY KEY AUTOINCREMENT,
    topic        TEXT NOT NULL,
    data         TEXT NOT NULL,
    attributes   TEXT NOT NULL,
    published_at INTEGER NOT NULL
);

-- Ids that were published lately, kept longer than the message so that a second publishing is noticed.
CREATE TABLE bus_seen (
    id     TEXT PRIMARY KEY,
    number INTEGER NOT NULL,
    at     INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX bus_seen_by_age ON bus_seen (at);

CREATE TABLE bus_deliveries (
    subscription TEXT NOT NULL,
    number       INTEGER NOT NULL REFERENCES bus_messages (number),
    visible_at   INTEGER NOT NULL,
    attempt      INTEGER NOT NULL,
    PRIMARY KEY (subscription, number)
) WITHOUT ROWID;
CREATE INDEX bus_deliveries_visible ON bus_deliveries (subscription, visible_at, number);
CREATE INDEX bus_deliveries_of_message ON bus_deliveries (number);

CREATE TABLE quarantine (
    key        TEXT PRIMARY KEY,
    id         TEXT NOT NULL,
    topic      TEXT NOT NULL,
    reason     TEXT NOT NULL,
    at         INTEGER NOT NULL,
    data       TEXT NOT NULL,
    encoding   TEXT NOT NULL,
    attributes TEXT NOT NULL
);
CREATE INDEX quarantine_newest ON quarantine (at, key);

CREATE TABLE quarantine_failures (
    key    TEXT PRIMARY KEY,
    count  INTEGER NOT NULL,
    reason TEXT NOT NULL,
    at     INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX quarantine_failures_by_age ON quarantine_failures (at);
