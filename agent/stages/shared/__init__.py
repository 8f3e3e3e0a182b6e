"""What several stages need: saving, approval, effects, lease, kill switch."""
