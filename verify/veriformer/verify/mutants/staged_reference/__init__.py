"""Small correct implementations in plain PyTorch, in stages, so that one stage can be exchanged for a faulty one."""
