"""The embeddable server, its gate, its saved states and its algorithms."""
