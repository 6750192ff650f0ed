"""Benchmarks: rivermouth beside what an engineer would write by hand, in one run on one machine."""
