"""The projections: a kitchen's log folded into tables, live and on replay by the same functions."""
