"""A simulated Cloud Run that replays recorded outcomes."""
