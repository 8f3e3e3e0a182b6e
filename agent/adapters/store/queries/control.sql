-- name: claim_add
INSERT INTO claims (plan, incident, decision) VALUES (:plan, :incident, :decision) ON CONFLICT (plan) DO NOTHING;

-- name: claim
SELECT decision FROM claims WHERE plan = :plan;

-- name: request_add
INSERT INTO requests (id, body) VALUES (:id, :body) ON CONFLICT (id) DO NOTHING;

-- name: request
SELECT body FROM requests WHERE id = :id;

-- name: ballot
SELECT body FROM ballots WHERE plan_digest = :plan_digest;

-- name: ballot_set
INSERT INTO ballots (plan_digest, body) VALUES (:plan_digest, :body)
ON CONFLICT (plan_digest) DO UPDATE SET body = excluded.body;

-- name: receipt_add
INSERT INTO receipts (decision, effect, service, at) VALUES (:decision, :effect, :service, :at)
ON CONFLICT (decision) DO NOTHING;

-- name: receipt
SELECT effect FROM receipts WHERE decision = :decision;

-- name: begun_count
SELECT count(*) FROM receipts;

-- name: begun
SELECT intents.body FROM receipts JOIN intents USING (effect) LEFT JOIN closed_effects USING (effect)
WHERE receipts.at >= :since AND closed_effects.effect IS NULL ORDER BY receipts.at;

-- name: used_add
INSERT INTO used (name, until) VALUES (:name, :until) ON CONFLICT (name) DO NOTHING;

-- name: used_forget
DELETE FROM used WHERE until < :before;

-- name: used_give_back
DELETE FROM used WHERE name = :name;

-- name: changes_of_service
SELECT at FROM receipts WHERE service = :service AND at >= :since ORDER BY at;

-- name: changes
SELECT at, service FROM receipts WHERE at >= :since ORDER BY at;

-- name: kill_switch
SELECT is_on, who, why, at FROM kill_switch;

-- name: kill_switch_set
INSERT INTO kill_switch (one, is_on, who, why, at) VALUES (1, :is_on, :who, :why, :at)
ON CONFLICT (one) DO UPDATE SET is_on = excluded.is_on, who = excluded.who, why = excluded.why, at = excluded.at;

-- name: intent_add
INSERT INTO intents (effect, body) VALUES (:effect, :body) ON CONFLICT (effect) DO NOTHING;

-- name: intent
SELECT intents.body, closed_effects.why FROM intents LEFT JOIN closed_effects USING (effect) WHERE effect = :effect;

-- name: intent_close
INSERT INTO closed_effects (effect, why) VALUES (:effect, :why) ON CONFLICT (effect) DO NOTHING;

-- name: closed
SELECT why FROM closed_effects WHERE effect = :effect;

-- name: lease
SELECT holder, token, ends_at FROM leases WHERE name = :name;

-- name: lease_set
INSERT INTO leases (name, holder, token, ends_at) VALUES (:name, :holder, :token, :ends_at)
ON CONFLICT (name) DO UPDATE SET holder = excluded.holder, token = excluded.token, ends_at = excluded.ends_at;

-- name: lease_release
UPDATE leases SET ends_at = 0 WHERE name = :name AND token = :token;

-- name: latest_raise
INSERT INTO latest (one, at) VALUES (1, :at) ON CONFLICT (one) DO UPDATE SET at = excluded.at WHERE at < excluded.at;

-- name: latest
SELECT at FROM latest;

-- name: audit_add
INSERT INTO audit (number, at, kind, incident, who, body, chain)
VALUES (:number, :at, :kind, :incident, :who, :body, :chain);

-- name: audit_newest
SELECT number, at, kind, incident, who, body, chain FROM audit ORDER BY number DESC LIMIT :limit;

-- name: audit_before
SELECT number, at, kind, incident, who, body, chain FROM audit
WHERE number < coalesce(:before, 9223372036854775807) ORDER BY number DESC LIMIT :limit;
