"""The requests on the channel of a CORE session, and their answers."""
