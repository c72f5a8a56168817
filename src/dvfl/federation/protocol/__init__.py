"""What parties say to each other: messages, their frame, the signed plan.

Uses `parties` and `align`. Start reading at `messages`; `wire` frames and checks them.
"""

__all__ = [
    "alignment_codec",
    "dropping",
    "messages",
    "plan",
    "plan_fields",
    "prediction_limits",
    "predictions",
    "wire",
    "wire_types",
]
