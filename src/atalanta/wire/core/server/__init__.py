"""The server side of a CORE connection."""
