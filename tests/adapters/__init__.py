"""Tests of the adapters, over real sockets on loopback and real keyrings where there is one."""
