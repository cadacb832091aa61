"""assertions - what is claimed of something that gsort has written; a claim that is broken is a line"""
n_broken = 0


def claim(is_true, what):
    global n_broken
    if not is_true:
        print('BROKEN:', what)
        n_broken += 1


def status():
    """Of the process, at its end."""
    return n_broken > 0
