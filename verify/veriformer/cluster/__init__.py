"""Work on many machines: named items run by Dask ``distributed``, each in a process that it alone can end.

It knows nothing of what the items are, and imports none of the other packages: a session names the class that does
them, ``package.module:Class``, which the processes import where they run.
"""
