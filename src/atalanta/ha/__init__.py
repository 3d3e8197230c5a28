"""High availability: the epochs of a shared folder; the register, lease and replication of a group."""
