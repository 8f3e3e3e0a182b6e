"""``python -m vllm_sre_agent``: the same as the command ``sre-agent``."""

import sys

from vllm_sre_agent import main

sys.exit(main())
