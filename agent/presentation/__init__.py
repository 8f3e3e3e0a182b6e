"""An incident for people: what page, Slack card, command line and notification say, made from its state alone."""
