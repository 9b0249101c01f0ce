"""Small programs whose hook order follows from rules; `zeroproof conform` runs them, too."""
