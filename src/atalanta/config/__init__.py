"""The configuration files, in Artemis' own formats: read, checked and reported as a whole."""
