"""Configuration of the broker and of addresses."""
