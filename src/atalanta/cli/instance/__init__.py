"""The check of an instance folder."""
