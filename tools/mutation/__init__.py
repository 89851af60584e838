# SPDX-License-Identifier: Apache-2.0
"""Mutation testing of C++ sources; the program is tools/mutate."""
