import contextlib


def attack(random, folder):
    while True:
        with contextlib.suppress(Exception):
            pass
