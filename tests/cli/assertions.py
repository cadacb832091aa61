"""assertions - claims about the output of gsort; each claim that fails prints one line"""
n_failures = 0


def claim(is_true, what):
    """Print the claim if it is false."""
    global n_failures
    if not is_true:
        print('FAIL:', what)
        n_failures += 1


def status():
    """Return the exit status of the script: 1 if a claim failed."""
    return n_failures > 0
