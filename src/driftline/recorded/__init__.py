"""ONE ORDER FOR EVERYTHING: events and changes as they were recorded, and what follows from them.

    files ──recorder──▶ sequence ──▶ reading ──▶ versions        plain filters, by numbers
                  └───▶ book, pages         └──▶ routing ──▶ shard, inputs ──▶ interpreter ──▶ told

What is told is a function of the recorded sequence: not of batches, shards, machines, or of how
often something failed and was done again. Nothing here knows Spark, which only decides where and
when it happens.

Reading order:

1. `changes` – what may change while events pass
2. `sequence`, `reading` – numbers for rows of files, for good; and the rows of numbers
3. `book`, `pages`, `versions` – which version of a subscription counts at a number
4. `places`, `routing` – on which shard something is remembered
5. `interpreter`, `order`, `told` – engines that are told a sequence
6. `held`, `shard`, `inputs` – how a shard goes on from batch to batch, and begins again
7. `recorder`, `config` – what has come; what a pipeline is
8. `replay` – the slow and obvious reference
9. `plan`, `quick` – where everything is, in words; one file of subscriptions as a pipeline

`example/` is what `driftline pipeline init` writes.
"""
