# SPDX-License-Identifier: Apache-2.0
"""The report: sections as data, and the HTML page that is made of them."""
