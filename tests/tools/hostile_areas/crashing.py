import os
import signal


def attack(random, folder):
    (folder / "input").write_text("x")
    if random.random() < 0.3:
        os.kill(os.getpid(), signal.SIGSEGV)
