"""The polling core: waits for provider jobs as bounded, audited actions. Knows no terminal."""

__version__ = "0.1.0"
