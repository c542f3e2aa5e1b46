"""The one-machine set-up: what `trueup up` and `trueup demo` start so that nothing else is needed.

Three processes: the command itself, the broker, and a worker that owns the in-process ClickHouse.
"""

from pipeline.embedded.broker import Broker as Broker
from pipeline.embedded.ports import free_port as free_port
