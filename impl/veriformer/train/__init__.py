"""The command ``train``, whose arguments are checked before ``veriformer.impl`` and PyTorch are imported."""
