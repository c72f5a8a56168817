"""One attack a file, each a measurement: what an attacker makes of what it saw, by what it knew beside it."""
