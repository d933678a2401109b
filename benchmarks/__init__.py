"""Benchmarks: each compares things side by side in one run and prints ratios or intervals."""
