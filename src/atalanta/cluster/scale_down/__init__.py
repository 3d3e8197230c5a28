"""Scale-down: a node moves its messages to another member and stops."""
