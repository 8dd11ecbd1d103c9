# SPDX-License-Identifier: Apache-2.0
"""Pictures of what plots/analysis finds, one kind a module; style.py is what they share."""
