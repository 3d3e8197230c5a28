"""The file atalanta.toml: options that Artemis does not have."""
