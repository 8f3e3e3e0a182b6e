"""What would fit instead, what it costs, and what it takes away."""
