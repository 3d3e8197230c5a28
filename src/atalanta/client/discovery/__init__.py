"""Discovery of servers by UDP or JGroups, and the choice among them."""
