"""The simulator of whole clusters: virtual network, disks, clocks and faults from one seed, without real input or
output.

The nodes in it are real ones (`atalanta.node.node.Node`); only their environment is simulated.
"""
