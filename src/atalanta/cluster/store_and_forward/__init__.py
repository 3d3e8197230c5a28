"""Messages parked for an absent member, and their move to other queues."""
