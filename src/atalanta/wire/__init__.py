"""Wire protocols, one folder each, and the seam that they plug into: sniffer, protocol, connection, host."""
