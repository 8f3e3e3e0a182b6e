"""What broke? Log text in, one failure class with its numbers and fixes out; pure."""
