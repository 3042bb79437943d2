"""Simulated appliances (the device side of Core) and the demo kitchen."""
