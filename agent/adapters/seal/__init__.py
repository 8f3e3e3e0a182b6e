"""What signs receipts outside of this process, one module per service."""
