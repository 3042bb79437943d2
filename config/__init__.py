"""Settings, paths and logging of a hub. Imports no other room."""
