"""The process of one member of a replicated group: its passive and its active runs."""
