"""AIDS FOR TESTS: random statements and events, and checks that any implementation can run.

For the tests of this project and of what others build on it. Needs `hypothesis`, so nothing else in
the package may import it.
"""
