"""The resources of other parts of the node that management shows."""
