"""Everything that a trial needs, loaded once: processes that are forked after this only load what is mutated anew."""

import contextlib
import gc
import io
import tempfile

from veriformer.spec.proofs import algebra, counterexample, latex_reader, pullbacks, readable, spaces
from veriformer.spec.registry import equations
from veriformer.spec.sabotage.dependants import everything

LOADED = (algebra, counterexample, latex_reader, pullbacks, readable, spaces, equations(), everything())

with contextlib.suppress(ImportError), contextlib.redirect_stdout(io.StringIO()):
    import latex2mathml.converter  # noqa: F401
    import pytest

    with tempfile.TemporaryDirectory() as empty:  # its plugins are loaded with the first run
        pytest.main(["-q", "-p", "no:cacheprovider", "-p", "no:xdist", empty])

gc.collect()
gc.freeze()  # what is loaded stays, and need not be looked through again
