"""The research around semistream: workloads, cost models, the tuner, the papers' experiments, peers."""
