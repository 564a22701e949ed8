"""Real Spark drivers for demo and tests: installed from PyPI, run with a scripted life, observed from outside."""
