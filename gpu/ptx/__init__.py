"""PTX, as compilers write it and as `asm` statements contain it."""
