import threading


def attack(random, folder):
    threading.Event().wait(0.5)
