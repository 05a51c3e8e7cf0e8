"""Benchmarks of omnifair against its peers: objective, datasets, methods, experiments, tables."""
