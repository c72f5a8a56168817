"""Pages of audits, made from templates of this package in the style of all reports."""

from typing import Any

import jinja2


def rendered(template: str, **values: Any) -> str:
    """A page that needs nothing but itself."""
    environment = jinja2.Environment(
        loader=jinja2.ChoiceLoader([jinja2.PackageLoader("dvfl.audit"), jinja2.PackageLoader("dvfl.runs")]),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template(template).render(**values)
