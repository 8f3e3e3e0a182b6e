"""Looks at every setting, permission and dependency, and says of each that it is good or what to do."""
