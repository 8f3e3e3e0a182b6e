-- The votes about a plan that several people must approve, by the digest of the plan: one JSON, replaced as a whole.
CREATE TABLE ballots (
    plan_digest TEXT PRIMARY KEY,
    body        TEXT NOT NULL
) WITHOUT ROWID;
