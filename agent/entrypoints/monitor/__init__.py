"""The monitors: of a server on this machine, and of the workloads of a cluster."""
