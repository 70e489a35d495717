"""What goes out of a core beside polls: notices, metrics, logs, the file of a service."""
