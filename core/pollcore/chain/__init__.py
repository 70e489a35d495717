"""The audit chain as bytes: layout, sealing, checkpoints, verification, the evidence file. Pure.

Job: everything that a stranger with the file and the public key can compute, and the bytes that a writer makes. Must
not know: files, SQL, keyrings, clocks, chance (salts and instants come in as arguments).
"""
