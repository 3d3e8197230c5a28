"""Replication between the members of a group: the stream of journal, page files and large bodies, and its two ends."""
