"""Queues and addresses of a running broker, as the command line shows and changes them."""
