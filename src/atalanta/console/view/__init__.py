"""The parts of pages: links, templates with escaping, bodies of messages as text."""
