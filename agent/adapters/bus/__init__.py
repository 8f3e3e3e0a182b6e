"""How events travel: an embedded durable queue, or Pub/Sub."""
