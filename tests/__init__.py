"""A package with a name of its own, so that no installed distribution that brings a package ``tests`` is found first."""
