"""One cause, thousands of operations: one card, one answer."""
