"""The fleet put together: aggregates and rules, plan and opening, plan changes, properties of the whole."""
