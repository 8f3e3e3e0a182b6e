"""Azure: who we are there."""
