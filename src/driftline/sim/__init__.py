"""An overlay of brokers in one process, where time is a number and chance is a seed.

The brokers are the ones that run for real; what is simulated is the network between them. The same
seed gives the same run, to the last message.
"""
