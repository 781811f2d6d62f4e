"""The broker without input and output: messages in, effects out.

`Broker.handle` takes one control message or request, `Broker.handle_batch` events; both return the
*effects* a driver must perform, in order. A broker never waits, reads no clock and draws no lots,
so the simulator and the real server run the same code. Read `effects`, then `broker`, then `edge`.
"""
