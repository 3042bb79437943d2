"""The event log: a chain of rows, and the head kept beside it."""
