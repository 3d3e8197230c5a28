"""TLS contexts from Artemis' parameters, for acceptors, connectors and clients."""
