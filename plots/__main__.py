# SPDX-License-Identifier: Apache-2.0
"""Entry point of `python -m plots`."""

import sys

from plots.cli import main

if __name__ == "__main__":
    sys.exit(main())
