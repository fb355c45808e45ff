"""Networks that guess parameters from a video, to hold beside what gradients find.

They need PyTorch, `pip install -e '.[all,torch]'`, and learn from a data set that `adjsim dataset`
made. Nothing in adjsim, render, adjoint or studies knows them.
"""
