"""Runs zeroproof's training programs on engines of PyTorch, and compares them with plain PyTorch."""

__version__ = "0.1.0"
