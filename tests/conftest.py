from hypothesis import settings

# The same examples in every run; a shared machine may be slow at any moment.
settings.register_profile("omnifair", derandomize=True, deadline=None, max_examples=60)
settings.load_profile("omnifair")
