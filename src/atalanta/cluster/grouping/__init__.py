"""Grouping handlers (Artemis: `<grouping-handler>`)."""
