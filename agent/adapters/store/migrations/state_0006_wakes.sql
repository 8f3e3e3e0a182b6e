-- due_at is when time alone brings something on, of an incident that has ended too: people are told of it again.
UPDATE incidents SET due_at = NULL WHERE is_open = 0;
DROP INDEX incidents_due;
CREATE INDEX incidents_due ON incidents (due_at, id) WHERE due_at IS NOT NULL;
