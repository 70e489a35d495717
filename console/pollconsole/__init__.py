"""The console and the command line of pollconsole: they show and ask, the core (pollcore) decides and sends."""

__version__ = "0.1.0"
