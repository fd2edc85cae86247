"""The operations of the contract as typed signatures without bodies, one file per area.

Each docstring says in one line what a call gives, with the numbers of the source documents' equations in brackets.
"""
