"""The way of a message into a queue and to a consumer."""
