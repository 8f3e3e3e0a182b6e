"""Where incidents live: SQLite, Firestore, memory."""
