"""What goes wrong: crashing links, guests and hosts, recorded outages, late and wrong messages.

Uses `numerics`. Start reading at `fault_set`, which reads `--faults`; `chains` draws the crashes.
"""

__all__ = ["chains", "corruption", "fault_set", "lateness", "outages"]
