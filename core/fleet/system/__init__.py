"""The aggregates of a fleet and their rules put together: the plan, the opening, plan changes, properties of the whole."""
