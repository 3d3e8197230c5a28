"""The files of a member with a backup: its process need not answer, and a passive one does not."""
