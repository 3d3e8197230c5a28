"""Bodies of large messages, sent from and received into streams and files."""
