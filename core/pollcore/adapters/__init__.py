"""Adapters: what fulfils the ports with real libraries. Only `pollcore.assembly` knows which of them is used."""
