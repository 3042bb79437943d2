"""The hub's HTTP API: Core's endpoints, and those of a household. Status codes live here only."""
