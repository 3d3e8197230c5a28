"""What the process of one member of a replicated group has: its folder, its status, its calls of the register."""
