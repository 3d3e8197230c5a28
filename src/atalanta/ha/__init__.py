"""High availability: the register of a group, the lease, and the replication of the journal. No shell uses it yet."""
