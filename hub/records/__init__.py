"""The records: the event log, and later the plans."""
