"""Public conformance vectors, run against this program, and the report on it (Core §1)."""
