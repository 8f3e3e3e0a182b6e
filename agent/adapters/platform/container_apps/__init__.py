"""Azure Container Apps as a platform: revisions, workload profiles, traffic weights."""
