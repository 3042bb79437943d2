"""Everything that travels: documents, canonical JSON, CloudEvents, inbox, bus. Knows nothing of cooking."""
