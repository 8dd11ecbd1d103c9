# SPDX-License-Identifier: Apache-2.0
"""`python -m plots`, in a checkout: what `crossover` does with result files."""

import sys
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parent))
    try:
        from crossover_bench.shell.cli import main
    except ModuleNotFoundError as error:
        print(
            f"crossover: this Python has no package {error.name}; use .venv/bin/crossover, which "
            "./run --setup-only makes",
            file=sys.stderr,
        )
        sys.exit(2)
    except KeyboardInterrupt:
        sys.exit(130)
    sys.exit(main())
