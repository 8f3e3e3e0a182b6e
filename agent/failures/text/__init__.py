"""Log text read line by line: entries, streams, starts and client text."""
