"""Work elsewhere: named items done by processes of this machine, or on many machines by Dask ``distributed``.

Each item runs in a process that can be ended by itself. The package knows nothing of what the items are, and imports
none of the other packages: a session names the class that does them, ``package.module:Class``, which the processes
import where they run.
"""
