"""Deterministic simulation of the whole core behind its ports: one seed, one trace (`python -m tests.sim --seed N`)."""
