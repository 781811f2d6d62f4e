"""WHAT IS THERE TO MATCH? Real data and seeded generators, for demonstration, benchmarks, tests.

`prices` loads daily stock prices that somebody really paid, `subscriptions` invents people who care
about them, `files` writes both where a pipeline can read them. Everything drawn at random is drawn
from a seed and is the same on every machine.
"""
