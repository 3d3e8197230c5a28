"""The composition of a node: configuration, ports, node and shell from a broker.xml. It imports all other parts."""
