"""What attackers learn with: regressions, networks, neighbours, public rows.

Uses `audit.recordings`. Start reading at `readers`.
"""

__all__ = ["alike", "label_reader", "neighbours", "priors", "readers", "side_by_side", "surrogates"]
