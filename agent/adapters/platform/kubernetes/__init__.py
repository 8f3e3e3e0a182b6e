"""Kubernetes by its API server: Deployments and StatefulSets."""
