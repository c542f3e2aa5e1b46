"""The hard world: what really goes wrong between agents, networks and systems of record, each kind on purpose.

Every scene says itself which verdicts its sessions must end with: the truth is known by construction, and no rule that
judges sessions is repeated here.
"""
