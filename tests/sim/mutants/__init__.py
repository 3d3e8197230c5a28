"""Bugs planted on purpose: the simulator must find each of them (test_mutants.py). Interpreted build only.

Every public function of the modules here is one; `python -m tests.sim.mutants` tells which seeds find them.
"""
