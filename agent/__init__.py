"""An SRE agent for self-hosted LLM servers: from log event to verified fix."""

import sys

if sys.version_info < (3, 11):  # noqa: UP036 - pip refuses a wheel; a checkout is only found on the path
    print(
        f"sre-agent does not run: this is Python {sys.version.split()[0]}. "
        "Hint: use Python 3.11 or newer: make PYTHON=/path/to/python3.11 install",
        file=sys.stderr,
    )
    sys.exit(2)
