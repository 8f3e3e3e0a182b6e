"""What an operator may ask for: of the files of this machine, or of `decide` in the cloud."""
