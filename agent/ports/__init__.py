"""What the stages need from the world, named for the need."""
