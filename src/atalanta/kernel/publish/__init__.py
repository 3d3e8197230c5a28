"""The publisher of messages, and their moves: diverts, expiry, dead letters, redelivery, redistribution."""
