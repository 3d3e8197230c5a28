"""The answers of one node: its management is asked, and the answers are checked."""
