"""What every kind of run leaves behind: its folder, its report, its pictures.

Uses `simulation` and what is below it. Start reading at `run_folder`.
"""

__all__ = ["figures", "interrupts", "report", "run_folder", "simulate"]
