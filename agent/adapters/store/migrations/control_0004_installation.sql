-- Which installation this database is of, whether the other one is known to carry the id too, how far that one had come.
CREATE TABLE installation (
    one     INTEGER PRIMARY KEY CHECK (one = 1),
    id      TEXT NOT NULL,
    paired  INTEGER NOT NULL CHECK (paired IN (0, 1)),
    reached INTEGER NOT NULL
);
