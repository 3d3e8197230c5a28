"""The backups that a colocated primary hosts for other members, in processes of their own."""
