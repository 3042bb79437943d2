"""Who may ask for what: keys, signatures, agent mandates. Pure decisions, no I/O."""
