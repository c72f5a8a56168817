"""What every party has: its files of settings, what it must not forget, its runtime and life cycle.

Uses `protocol`, `keys` and `transport`. Start reading at `settings`.
"""

__all__ = ["configuration", "endings", "lifecycle", "owner_settings", "runtime", "settings", "storage", "tasks"]
