"""High availability on real folders: the epochs of a shared store, their lease, and the files of its members."""
