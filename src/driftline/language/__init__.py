"""TEXT ⇄ MODEL: SQL, the Python builder, CloudEvents, and the shapes of files.

Every door leads to the same model and refuses what it cannot honour exactly. The only package
that imports sqlglot.
"""
