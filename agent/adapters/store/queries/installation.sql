-- name: mark
SELECT id, paired, reached FROM installation;

-- name: mark_first
INSERT INTO installation (one, id, paired, reached) VALUES (1, :id, :paired, :reached) ON CONFLICT (one) DO NOTHING;

-- name: mark_set
INSERT INTO installation (one, id, paired, reached) VALUES (1, :id, :paired, :reached)
ON CONFLICT (one) DO UPDATE SET id = excluded.id, paired = excluded.paired, reached = excluded.reached;

-- name: mark_reached
UPDATE installation SET reached = max(reached, :reached) WHERE one = 1;
