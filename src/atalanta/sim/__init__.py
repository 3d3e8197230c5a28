"""A virtual world for whole clusters: network, disks, clocks and faults from one seed. Pure.

The nodes in it are the real ones (`atalanta.node.node.Node`); only what surrounds them is simulated.
"""
