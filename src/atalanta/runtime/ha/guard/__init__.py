"""The guard of a node: a small parent process that proves the end of its child, the broker, to backups."""
