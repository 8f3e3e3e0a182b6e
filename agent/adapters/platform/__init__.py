"""What runs the servers: one folder per platform, and what they share."""
