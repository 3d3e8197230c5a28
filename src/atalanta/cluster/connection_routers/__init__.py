"""Connection routers: the choice of the broker for a client, so that related producers and consumers share one.
Pure."""
