"""Advice about cooking: what would hold, and what would not. It permits nothing and protects from nothing."""
