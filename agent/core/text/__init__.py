"""Text for people, with outside text made safe to show."""
