-- Change requests as the deciding function signed them: their JSON, the first one written stays.
CREATE TABLE requests (
    id   TEXT PRIMARY KEY,
    body TEXT NOT NULL
) WITHOUT ROWID;
