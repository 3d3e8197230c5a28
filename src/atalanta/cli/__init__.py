"""The commands: `atalanta run`, `atalanta version`."""
