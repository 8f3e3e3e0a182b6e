"""Where incidents are kept: SQLite or Firestore."""
