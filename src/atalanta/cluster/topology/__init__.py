"""The topology of a cluster: its members, and who subscribes to changes of them."""
