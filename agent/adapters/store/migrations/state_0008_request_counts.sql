-- Requests to the model by service and hour, as the server's own counters tell; hour is microseconds since 1970 UTC.
CREATE TABLE request_counts (
    service  TEXT NOT NULL,
    hour     INTEGER NOT NULL,
    answered REAL NOT NULL,
    failed   REAL NOT NULL,
    PRIMARY KEY (service, hour)
) WITHOUT ROWID;
