"""Changes of the configuration of a running node by management: checked, written, applied, kept, and taken back."""
