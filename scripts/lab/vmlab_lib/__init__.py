# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""The parts of scripts/vmlab, one noun per file."""
