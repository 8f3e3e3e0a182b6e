"""SQLite: incidents, control data, cards, marks and the group commit."""
