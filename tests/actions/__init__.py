"""What people, scripts and screens can do, over a real store and real HTTP on loopback."""
