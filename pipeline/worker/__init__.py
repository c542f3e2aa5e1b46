"""A process of trueup: the parts that run in it, put together, started and stopped as one."""
