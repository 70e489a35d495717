"""All seeded bugs by name: importing the lists registers them."""

from __future__ import annotations

from tests.sim import mutants_rules, mutants_store
from tests.sim.mutant import MUTANTS, SEEDS

__all__ = ["MUTANTS", "SEEDS", "mutants_rules", "mutants_store"]
