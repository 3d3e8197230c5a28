"""The section `<ha-policy>`, with its managers and scale-down."""
