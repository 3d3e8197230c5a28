"""Commands about the files of nodes: no broker runs, or only one in the simulator."""
