"""What attackers learn with: regressions, networks, neighbours, public rows.

Uses `audit.recordings`. Start reading at `readers`.
"""
