# SPDX-License-Identifier: Apache-2.0
"""Entry point of `python -m plots`."""

import sys

if __name__ == "__main__":
    try:
        from plots.cli import main
    except ModuleNotFoundError as error:
        print(
            f"python -m plots: this Python has no package {error.name}; use .venv/bin/python, "
            "which ./run --setup-only makes, or pip install .",
            file=sys.stderr,
        )
        sys.exit(2)
    except KeyboardInterrupt:
        sys.exit(130)
    sys.exit(main())
