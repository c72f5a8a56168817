"""Decoupled vertical federated learning, the paper's Algorithm 1: guests, then hosts, then the owner.

Uses `simulation` and what is below it. Start reading at `dvfl`, then `guest_phase`, `host_phase`, `owner_phase`.
"""
