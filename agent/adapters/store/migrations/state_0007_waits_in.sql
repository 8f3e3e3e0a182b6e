-- The phase in which it waits for a person, or none: agent/core/incident/renotify.py, said here of what is stored.
ALTER TABLE incidents ADD COLUMN waits_in TEXT;
UPDATE incidents SET waits_in = json_extract(body, '$.phase')
WHERE json_extract(body, '$.phase') = 'ASKED' OR (
    json_extract(body, '$.phase') = 'ESCALATED' AND run = 'live'
    AND json_extract(body, '$.acknowledged') IS NULL AND json_extract(body, '$.replan') IS NULL
    AND ifnull(json_extract(body, '$.assignee'), '') = ''
);
CREATE INDEX incidents_waits_in ON incidents (waits_in, opened_at, id) WHERE waits_in IS NOT NULL;
