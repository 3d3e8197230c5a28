"""What one node says: its management is asked, and the answers are checked."""
