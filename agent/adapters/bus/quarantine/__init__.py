"""Where messages stand that cannot be handled."""
