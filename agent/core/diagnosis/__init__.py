"""What broke and why: by the rules, by the model, and joined."""
