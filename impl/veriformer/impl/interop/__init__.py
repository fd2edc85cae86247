"""Weights of other libraries, in both directions."""

from veriformer.impl.interop.peers import from_peer, peer_state, to_peer

__all__ = ["from_peer", "peer_state", "to_peer"]
