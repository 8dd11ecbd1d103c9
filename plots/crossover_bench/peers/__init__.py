# SPDX-License-Identifier: Apache-2.0
"""Other frameworks measured beside bench: the same work, into the same files.

docs/method/peers.md says how. What needs the framework itself lies in a package of its own
(peers/pytorch) and runs in an environment of its own; nothing else here imports it.
"""
