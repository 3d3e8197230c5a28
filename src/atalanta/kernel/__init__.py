"""The broker's rules, without protocols, sockets, files, clocks or randomness."""
