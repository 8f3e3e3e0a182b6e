-- name: signal_add
INSERT INTO signals (key, incident, at, body) VALUES (:key, :incident, :at, :body) ON CONFLICT (key) DO NOTHING;

-- name: signal_count_up
INSERT INTO signal_counts (incident, count) VALUES (:incident, 1)
ON CONFLICT (incident) DO UPDATE SET count = count + 1
RETURNING count;

-- name: signal_count
SELECT count FROM signal_counts WHERE incident = :incident;

-- name: signal_home
SELECT incident FROM signals WHERE key = :key;

-- name: signals_first
SELECT body FROM signals WHERE incident = :incident ORDER BY at, key LIMIT :limit;

-- name: signals_last
SELECT body FROM signals WHERE incident = :incident ORDER BY at DESC, key DESC LIMIT :limit;

-- name: head
SELECT incident FROM heads WHERE key = :key;

-- name: head_set
INSERT INTO heads (key, incident) VALUES (:key, :incident)
ON CONFLICT (key) DO UPDATE SET incident = excluded.incident WHERE incident <> excluded.incident;

-- name: incident
SELECT body FROM incidents WHERE id = :id;

-- name: incident_version
SELECT version FROM incidents WHERE id = :id;

-- name: incident_create
INSERT INTO incidents (id, version, run, service, is_open, waits_in, opened_at, due_at, body)
VALUES (:id, 1, :run, :service, :is_open, :waits_in, :opened_at, :due_at, :body)
ON CONFLICT (id) DO NOTHING;

-- name: incident_replace
UPDATE incidents
SET version = :version + 1, is_open = :is_open, waits_in = :waits_in, due_at = :due_at, body = :body
WHERE id = :id AND version = :version;

-- name: incidents_due
SELECT id FROM incidents WHERE due_at <= :now ORDER BY due_at, id LIMIT :limit;

-- name: timeline_add
INSERT INTO timeline (incident, version, place, body) VALUES (:incident, :version, :place, :body);

-- name: timeline
SELECT body FROM timeline WHERE incident = :incident ORDER BY version, place;

-- name: plan_add
INSERT INTO plans (id, incident, body) VALUES (:id, :incident, :body) ON CONFLICT (id) DO NOTHING;

-- name: plan
SELECT body FROM plans WHERE id = :id;

-- name: outbox_add
INSERT INTO outbox (id, incident, body) VALUES (:id, :incident, :body) ON CONFLICT (id) DO NOTHING;

-- name: outbox
SELECT body FROM outbox WHERE incident = :incident ORDER BY number;

-- name: outbox_sent
DELETE FROM outbox WHERE id = :id;

-- name: outbox_incidents
SELECT incident FROM outbox GROUP BY incident ORDER BY MIN(number) LIMIT :limit;

-- name: latest_raise
INSERT INTO latest (one, at) VALUES (1, :at) ON CONFLICT (one) DO UPDATE SET at = excluded.at WHERE at < excluded.at;

-- name: latest
SELECT at FROM latest;

-- name: card
SELECT reference FROM cards WHERE incident = :incident AND notifier = :notifier;

-- name: card_keep
INSERT INTO cards (incident, notifier, reference) VALUES (:incident, :notifier, :reference)
ON CONFLICT (incident, notifier) DO UPDATE SET reference = excluded.reference;

-- name: card_claim
INSERT INTO card_claims (incident, notifier, holder, until)
SELECT :incident, :notifier, :holder, :until
WHERE (SELECT reference FROM cards WHERE incident = :incident AND notifier = :notifier) IS :reference
ON CONFLICT (incident, notifier) DO UPDATE SET holder = excluded.holder, until = excluded.until
WHERE holder = excluded.holder OR until <= :now;

-- name: card_claim_drop
DELETE FROM card_claims WHERE incident = :incident AND notifier = :notifier;

-- name: card_claim_release
DELETE FROM card_claims WHERE incident = :incident AND notifier = :notifier AND holder = :holder;

-- name: service_record
SELECT body FROM service_records WHERE service = :service;

-- name: service_record_keep
INSERT INTO service_records (service, body) VALUES (:service, :body)
ON CONFLICT (service) DO UPDATE SET body = excluded.body;

-- name: request_counts_add
INSERT INTO request_counts (service, hour, answered, failed) VALUES (:service, :hour, :answered, :failed)
ON CONFLICT (service, hour) DO UPDATE SET answered = answered + excluded.answered, failed = failed + excluded.failed;

-- name: request_counts_forget
DELETE FROM request_counts WHERE service = :service AND hour < :hour;

-- name: request_counts_since
SELECT service, SUM(answered), SUM(failed) FROM request_counts WHERE hour >= :hour GROUP BY service;
