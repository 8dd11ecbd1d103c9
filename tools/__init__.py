# SPDX-License-Identifier: Apache-2.0
"""What ./test runs, and what takes a GPU for minutes."""
