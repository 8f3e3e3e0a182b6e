-- Who may show an incident for the first time, until its place is known; until is microseconds since 1970 UTC.
CREATE TABLE card_claims (
    incident TEXT NOT NULL,
    notifier TEXT NOT NULL,
    holder   TEXT NOT NULL,
    until    INTEGER NOT NULL,
    PRIMARY KEY (incident, notifier)
) WITHOUT ROWID;
