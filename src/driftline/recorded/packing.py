"""How do rows travel as bytes?

A file of its own, because whoever only carries rows should load nothing else.
"""

from __future__ import annotations

import pyarrow as pa

_IPC = pa.ipc.IpcWriteOptions(compression="lz4")


def packed_events(batch: pa.RecordBatch) -> bytes:
    """Events with their numbers, as bytes."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema, options=_IPC) as stream:
        stream.write_batch(batch)
    return bytes(sink.getvalue())
