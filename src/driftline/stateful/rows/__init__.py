"""Changes of rows as messages: what every view but range-MIN rides on.

**Problem.** Whether a row enters, changes in or leaves a set is not to be seen from the new row
alone: that it left can be told only by one who knows that it was in. **Idea.** The table's home,
which knows, says both: a change is one message with the row before (`OLD_price`) and after
(`NEW_price`), and a condition over rows becomes one over such messages: true of the one or of the
other. Brokers on the way match it like any other, and whoever gets it knows what happened without
having kept anything. **Cost.** A message holds a row twice; a condition becomes two filters.

B. Chandramouli, J. Xie, J. Yang: On the Database/Network Interface in Large-Scale
Publish/Subscribe Systems, SIGMOD 2006. Cited as [DBNET]; this is the relaxed subscription of §4.

Read `change` (a change and its message), `interest` (a condition over rows as a subscription to
such messages), `live` (enter, change and leave from one of them).

We differ: the paper leaves the messages as they are published, so a subscriber of a range must keep
its rows to know what an update was before. And it ignores updates of attributes that a subscription
does not read; here the message says so (`CHANGED price, risk`), and the network can.
"""
