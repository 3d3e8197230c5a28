"""Connection routers: which broker a client belongs to, so that related producers and consumers meet on one. Pure."""
