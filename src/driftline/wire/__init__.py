"""BYTES ⇄ MESSAGES: what brokers say to one another, as bytes. No sockets, no clock.

    message ──codec──▶ payload ──framing──▶ bytes        control messages, as MessagePack
    parcels ──events─▶ payload ──framing──▶ bytes        events, in a layout of fixed offsets

Whatever bytes come, reading them gives what was written or raises `FrameRefused`, and nothing else.
What would be refused over there is refused here: writing it raises `InvalidValue`.

Reading order: limits, refusal, framing, values, records, events, shapes, rules, filters, codec.
"""
