"""Runs zeroproof's training programs on engines of PyTorch, and beside them plain PyTorch."""

__version__ = "0.1.0"
