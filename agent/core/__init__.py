"""The words of the trade and the rules of their life; pure."""
