"""Configuration files, Artemis' own: read whole, checked whole, reported whole."""
