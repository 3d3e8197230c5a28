"""What pages are made of: links, templates with escaping, bodies of messages as text."""
