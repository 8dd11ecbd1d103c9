# SPDX-License-Identifier: Apache-2.0
"""What ./run and ./test share: set-up, build, and the names of result files."""
