def attack(random, folder):
    return bytearray(2**31)
