"""What runs on an instance: files that are sent whole, one behind the other."""
