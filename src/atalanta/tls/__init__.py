"""TLS contexts from Artemis' parameters, for the server's shell and the client's."""
