-- name: subscribe
INSERT INTO bus_subscriptions (name, topic) VALUES (:name, :topic)
ON CONFLICT (name) DO UPDATE SET topic = excluded.topic;

-- name: seen
SELECT number FROM bus_seen WHERE id = :id;

-- name: seen_add
INSERT INTO bus_seen (id, number, at) VALUES (:id, :number, :at);

-- name: seen_prune
DELETE FROM bus_seen WHERE id IN (SELECT id FROM bus_seen WHERE at < :before ORDER BY at LIMIT :limit);

-- name: message_add
INSERT INTO bus_messages (topic, data, attributes, published_at) VALUES (:topic, :data, :attributes, :at);

-- name: deliveries_add
INSERT INTO bus_deliveries (subscription, number, visible_at, attempt)
SELECT name, :number, :at, 0 FROM bus_subscriptions WHERE topic = :topic;

-- name: message_drop_unwanted
DELETE FROM bus_messages
WHERE number = :number AND NOT EXISTS (SELECT 1 FROM bus_deliveries WHERE number = :number);

-- name: visible
SELECT d.number, d.attempt, m.topic, m.data, m.attributes, m.published_at
FROM bus_deliveries AS d JOIN bus_messages AS m ON m.number = d.number
WHERE d.subscription = :subscription AND d.visible_at <= :now
ORDER BY d.visible_at, d.number LIMIT :limit;

-- name: visible_any
SELECT 1 FROM bus_deliveries WHERE subscription = :subscription AND visible_at <= :now LIMIT 1;

-- name: lease
UPDATE bus_deliveries SET visible_at = :until, attempt = attempt + 1
WHERE subscription = :subscription AND number = :number;

-- name: ack
DELETE FROM bus_deliveries WHERE subscription = :subscription AND number = :number AND attempt = :attempt;

-- name: show_at
UPDATE bus_deliveries SET visible_at = :at
WHERE subscription = :subscription AND number = :number AND attempt = :attempt;

-- name: drop
DELETE FROM bus_deliveries WHERE subscription = :subscription AND number = :number;

-- name: waiting
SELECT s.name, COUNT(d.number) FROM bus_subscriptions AS s LEFT JOIN bus_deliveries AS d ON d.subscription = s.name
GROUP BY s.name;

-- name: oldest
SELECT published_at FROM bus_messages WHERE topic <> :dead ORDER BY number LIMIT 1;

-- name: failure_add
INSERT INTO quarantine_failures (key, count, reason, at) VALUES (:key, 1, :reason, :at)
ON CONFLICT (key) DO UPDATE SET count = count + 1, reason = excluded.reason, at = excluded.at
RETURNING count;

-- name: failures_prune
DELETE FROM quarantine_failures
WHERE key IN (SELECT key FROM quarantine_failures WHERE at < :before ORDER BY at LIMIT :limit);

-- name: failures_forget
DELETE FROM quarantine_failures WHERE key = :key;

-- name: quarantine_add
INSERT INTO quarantine (key, id, topic, reason, at, data, encoding, attributes)
VALUES (:key, :id, :topic, :reason, :at, :data, :encoding, :attributes) ON CONFLICT (key) DO NOTHING;

-- name: quarantine_rows
SELECT id, topic, reason, at, data, encoding, attributes FROM quarantine ORDER BY at DESC, key DESC LIMIT :limit;

-- name: quarantine_letters
SELECT key, topic, reason, at, data, encoding, attributes FROM quarantine ORDER BY at DESC, key DESC LIMIT :limit;

-- name: quarantine_letter
SELECT key, topic, reason, at, data, encoding, attributes FROM quarantine WHERE key = :key;

-- name: quarantine_take
DELETE FROM quarantine WHERE key = :key;

-- name: dead_letters
SELECT d.number, m.data, m.attributes, m.published_at
FROM bus_deliveries AS d JOIN bus_messages AS m ON m.number = d.number
WHERE d.subscription = :subscription ORDER BY d.number DESC LIMIT :limit;

-- name: dead_letter
SELECT d.number, m.data, m.attributes, m.published_at
FROM bus_deliveries AS d JOIN bus_messages AS m ON m.number = d.number
WHERE d.subscription = :subscription AND d.number = :number;
