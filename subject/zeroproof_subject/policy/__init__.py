"""Hook policies that zeroproof explores in every order: `explore --policy-command`."""
