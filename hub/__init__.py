"""The orchestrator: store, devices, executions, HTTP API and commands."""
