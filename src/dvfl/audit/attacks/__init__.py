"""Attacks, one a file: each looks at a recording and says how much of what is private it tells."""
