"""The zeroproof command; the packages beside it are zeroproof_recorder and zeroproof_subject."""
