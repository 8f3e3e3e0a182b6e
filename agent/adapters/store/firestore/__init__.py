"""Firestore: incidents, control data, cards and marks."""
