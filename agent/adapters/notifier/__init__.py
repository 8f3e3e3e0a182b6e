"""How people are told: console, Slack, webhooks."""
