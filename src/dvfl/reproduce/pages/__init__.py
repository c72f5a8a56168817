"""Results as people read them: tables, sentences, figures, pages.

Uses `reproduce.outcome` and `reproduce.paper`. Start reading at `presentation`.
"""
