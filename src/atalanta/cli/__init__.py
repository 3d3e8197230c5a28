"""The command line: `atalanta run`, `atalanta version`, and the commands for operators."""
