"""Results as people read them: tables, sentences, figures, pages.

Uses `reproduce.outcome` and `reproduce.paper`. Start reading at `presentation`.
"""

__all__ = [
    "curves",
    "grid",
    "pages",
    "paper_differences",
    "presentation",
    "table1_figure",
    "table1_findings",
    "table1_page",
    "text_tables",
    "time_page",
]
