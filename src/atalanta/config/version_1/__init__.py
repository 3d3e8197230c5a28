"""Files of Artemis 1.x: names that mean something else today, and the file to write instead."""
