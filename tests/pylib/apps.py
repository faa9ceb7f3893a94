# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Packages of the guests of the application tests, beside the default packages: one image for them and for bench/apps."""

from bench_lib.apps.apps import PACKAGES as _PACKAGES

PACKAGES = ",".join(_PACKAGES)
