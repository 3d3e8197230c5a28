"""A replicated group: machines with disks of their own, a register, and their faults."""
