"""A package, so that it is found before a package ``tests`` that some installed distribution brings."""
