-- What may happen once: signed requests, by a name that only they can have; until is microseconds since 1970 UTC.
CREATE TABLE used (
    name  TEXT PRIMARY KEY,
    until INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX used_by_end ON used (until);
