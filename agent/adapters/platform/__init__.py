"""What runs the servers: rehearsal, Cloud Run, a host."""
