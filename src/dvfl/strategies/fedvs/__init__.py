"""FedVS: training through Lagrange-coded secret shares in a prime field.

Uses `strategies.split` and `simulation`. Start reading at `fedvs`, then `code`.
"""

__all__ = ["code", "coded_parties", "fedvs", "lagrange", "polynomials", "prime_field", "quantisation"]
