"""What leaks: attacks as measurements, defences with their cost, and the report of both (docs/audit.md)."""
