"""The things that fill the ports, named for the thing."""
