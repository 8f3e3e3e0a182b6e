"""What broke? The matcher, and the precedence of cause over consequence; pure."""
