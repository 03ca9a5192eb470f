def attack(random, folder):
    (folder / "input").write_bytes(random.bytes(3))
