def product(a, b):
    return (a.float() @ b.float()).to(a.dtype)
