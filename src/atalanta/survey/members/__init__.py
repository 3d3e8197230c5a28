"""What the files of a member with a backup show: its process need not answer, and a passive one does not."""
