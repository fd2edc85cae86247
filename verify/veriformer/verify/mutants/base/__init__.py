"""Small correct implementations in plain PyTorch, cut into stages, so that one stage can be exchanged for a faulty one."""
