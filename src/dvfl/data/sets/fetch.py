"""Fetches a file from its public source."""

import http.client
import urllib.error
import urllib.request

from dvfl.data.sets.checksums import LIMIT, File, NotTheFile, checked

TIMEOUT_S = 20.0


class FetchFailed(Exception):
    """Why nothing could be fetched, in one line; the caller adds which data set it was."""


def fetch(address: str, file: File) -> bytes:
    """The bytes as they came, compressed or not, if they are the file's."""
    try:
        with urllib.request.urlopen(address, timeout=TIMEOUT_S) as reply:
            content: bytes = reply.read(LIMIT + 1)
        checked(content, file)
    except urllib.error.HTTPError as error:
        raise FetchFailed(f"{address} answered {error.code} {error.reason}") from error
    except urllib.error.URLError as error:
        raise FetchFailed(f"no connection for {address} ({error.reason})") from error
    except (OSError, http.client.HTTPException) as error:
        raise FetchFailed(f"{address} did not arrive whole ({' '.join(str(error).split())})") from error
    except NotTheFile as error:
        raise FetchFailed(f"{address} {error}") from error
    return content
