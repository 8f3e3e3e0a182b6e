"""What every adapter of Kubernetes uses: one client for each API server, and its errors made ours."""
