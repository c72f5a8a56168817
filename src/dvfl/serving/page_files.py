"""The files of the page: read once from the package, never from the disk by a name that came over HTTP."""

from importlib.resources import files

_KINDS = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}


def page_files() -> dict[str, tuple[bytes, str]]:
    """Content and type by path: `/` is the page, `/page/..` what it loads."""
    found = {}
    for file in files("dvfl.serving").joinpath("page").iterdir():
        kind = next((kind for ending, kind in _KINDS.items() if file.name.endswith(ending)), None)
        if kind is not None:
            path = "/" if file.name == "index.html" else f"/page/{file.name}"
            found[path] = (file.read_bytes(), kind)
    return found
