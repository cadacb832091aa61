"""assertions - claims about what gsort wrote; each broken claim prints a line"""
n_broken = 0


def claim(is_true, what):
    global n_broken
    if not is_true:
        print('BROKEN:', what)
        n_broken += 1


def status():
    """Return the exit status of the test."""
    return n_broken > 0
