"""Decisions beside the tables: policies and classifications, as pure functions with exact formulas."""
