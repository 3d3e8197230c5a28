"""The passive member of a group: its copy of the journal and the files, and how it becomes active."""
