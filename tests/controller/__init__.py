"""What the loop does over a real store, real HTTP on loopback, and a clock that jumps."""
