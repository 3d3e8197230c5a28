"""Messages parked for an absent member, and their way back to local queues."""
