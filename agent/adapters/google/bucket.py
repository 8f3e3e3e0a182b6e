"""The folders of a bucket, one level deep."""

from typing import Final
from urllib.parse import quote

from agent.adapters.google.rest import GoogleRest

MOST: Final = 1000


def folders_of(rest: GoogleRest, bucket: str, folder: str) -> tuple[str, ...]:
    """Return the folders below a folder as gs:// places, by name; the folder itself where it holds a config.json.

    Args:
        rest: Google's APIs.
        bucket: Its name.
        folder: Without slashes at its ends; empty for the whole bucket.

    Raises:
        SreError: The bucket cannot be read, or is not there.
    """
    prefix = f"{folder}/" if folder else ""
    query = {
        "delimiter": "/",
        "prefix": prefix,
        "fields": "prefixes,items(name),nextPageToken",
        "maxResults": str(MOST),
    }
    found: set[str] = set()
    for body in rest.pages("storage", f"/storage/v1/b/{quote(bucket, safe='')}/o", query):
        prefixes, items = body.get("prefixes"), body.get("items")
        found |= {str(each).strip("/") for each in (prefixes if isinstance(prefixes, list) else [])}
        names = {str(item.get("name")) for item in (items if isinstance(items, list) else []) if isinstance(item, dict)}
        if f"{prefix}config.json" in names:
            found.add(folder)
    return tuple(f"gs://{bucket}/{each}".rstrip("/") for each in sorted(found))
