# SPDX-License-Identifier: Apache-2.0
"""`python -m crossover_bench` is the command `crossover`."""

import sys

from crossover_bench.shell.command import main

if __name__ == "__main__":
    sys.exit(main())
