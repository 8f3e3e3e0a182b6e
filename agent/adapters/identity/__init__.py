"""Who the operator of this machine is on Google Cloud."""
