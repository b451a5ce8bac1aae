"""`python -m sevenfold`."""

from __future__ import annotations

import sys

from sevenfold.cli import main

sys.exit(main())
