"""Small programs whose hook order follows from rules: what `zeroproof conform` compares itself with."""
