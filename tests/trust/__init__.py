"""Proofs that cross floors: secrets through whole processes, keys through real terminals, every kind of authority."""
