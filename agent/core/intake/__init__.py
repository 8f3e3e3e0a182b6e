"""What reaches us from outside becomes signals: one file per shape, pure; ``read.py`` chooses among them."""
