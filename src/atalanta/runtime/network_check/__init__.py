"""The check whether the network is there (Artemis: `<network-check-list>`)."""
