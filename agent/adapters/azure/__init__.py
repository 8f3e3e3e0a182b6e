"""Azure: the identity of this process there, and its errors made ours."""
