-- The intent of each effect: its JSON, the first one written stays. A refused effect is closed, with or without one.
CREATE TABLE intents (
    effect TEXT PRIMARY KEY,
    body   TEXT NOT NULL
) WITHOUT ROWID;

CREATE TABLE closed_effects (
    effect TEXT PRIMARY KEY,
    why    TEXT NOT NULL
) WITHOUT ROWID;

-- Changes begun before this rule can be undone for as long as any other, and are never applied: they have no target.
INSERT INTO intents (effect, body)
SELECT effect, json_object(
    'key', effect, 'kind', 'apply', 'incident', '', 'service', receipts.service, 'decision', receipts.decision,
    'plan_digest', '', 'actions', json('[]'), 'target', NULL, 'etag', '', 'revision', '',
    'prior_template', priors.template, 'prior_traffic', priors.traffic,
    'applied_at', strftime('%Y-%m-%dT%H:%M:%fZ', receipts.at / 1000000.0, 'unixepoch')
)
FROM receipts JOIN priors USING (effect);

DROP TABLE priors;
