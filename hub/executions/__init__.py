"""A hub's execution and its attempts: what a client sees, and what stands behind it. Pure."""
