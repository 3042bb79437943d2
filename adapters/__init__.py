"""How a hub speaks to one device: the adapter protocol and the adapters that implement it."""
