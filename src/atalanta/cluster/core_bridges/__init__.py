"""Core bridges (Artemis: `<bridges>`)."""
