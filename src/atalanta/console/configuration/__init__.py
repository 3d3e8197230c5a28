"""The configuration of the nodes: elements by kind and name, compared over all nodes, and changed at run time."""
