"""The CORE protocol of Artemis: codec, sessions and configuration."""
