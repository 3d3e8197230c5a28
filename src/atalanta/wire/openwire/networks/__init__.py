"""What the brokers of a network know of each other's messages and consumers."""
