-- name: mark
SELECT id, paired, reached, chain FROM installation;

-- name: mark_first
INSERT INTO installation (one, id, paired, reached, chain) VALUES (1, :id, :paired, :reached, :chain)
ON CONFLICT (one) DO NOTHING;

-- name: mark_set
INSERT INTO installation (one, id, paired, reached, chain) VALUES (1, :id, :paired, :reached, :chain)
ON CONFLICT (one) DO UPDATE SET id = excluded.id, paired = excluded.paired, reached = excluded.reached,
    chain = excluded.chain;

-- name: mark_paired
UPDATE installation SET paired = 1 WHERE one = 1;

-- name: mark_reached
UPDATE installation SET reached = :reached, chain = :chain
WHERE id = :id AND (reached < :reached OR (reached = :reached AND chain = ''));
