"""The command line: one file per group of commands. `entry.run` is the way in; nothing here is imported by screens."""
