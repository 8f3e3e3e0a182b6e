-- Whether it waits for a person and nobody has taken note; of escalated rows it is read from the body, see the store.
ALTER TABLE incidents ADD COLUMN unattended INTEGER NOT NULL DEFAULT 0;
UPDATE incidents SET unattended = 1 WHERE instr(body, '"phase":"ESCALATED"') > 0;
CREATE INDEX incidents_unattended ON incidents (opened_at, id) WHERE unattended = 1;
