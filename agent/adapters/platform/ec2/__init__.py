"""EC2: a systemd unit on an instance, reached through Systems Manager."""
