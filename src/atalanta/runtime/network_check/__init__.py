"""The network check (Artemis: `<network-check-list>`)."""
