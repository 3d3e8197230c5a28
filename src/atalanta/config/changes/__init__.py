"""Changes of the configuration by management: the edit of its files, and what the elements and parameters are."""
