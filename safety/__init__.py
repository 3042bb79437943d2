"""The documents of cooking and advice about them. Pure decisions, no I/O."""
