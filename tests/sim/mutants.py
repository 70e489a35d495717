"""All seeded bugs by name: importing the lists registers them."""

from __future__ import annotations

from tests.sim import mutants_batch, mutants_leaves, mutants_rules, mutants_store
from tests.sim.mutant import FOCUS, MUTANTS, SEEDS

__all__ = ["FOCUS", "MUTANTS", "SEEDS", "mutants_batch", "mutants_leaves", "mutants_rules", "mutants_store"]
