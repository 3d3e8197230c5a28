"""Files of the journal, of pages and of large messages."""
