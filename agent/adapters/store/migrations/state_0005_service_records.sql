-- What was seen of each watched service; the last record stands.
CREATE TABLE service_records (
    service TEXT PRIMARY KEY,
    body    TEXT NOT NULL
) WITHOUT ROWID;
