"""Decode machine instructions of compute capability 7.0 and later, 16 bytes each."""

from __future__ import annotations

INSTRUCTION_BYTES = 16

_SPLIT_OFFSET_CAPABILITY = (9, 0)
"""The first compute capability at which branches store the low bits of their offset in a separate field."""

_NAMES = {
    0x002: "MOV", 0x003: "P2R", 0x005: "CS2R", 0x006: "VOTE", 0x007: "SEL", 0x008: "FSEL", 0x009: "FMNMX",
    0x00B: "FSETP", 0x00C: "ISETP", 0x010: "IADD3", 0x011: "LEA", 0x012: "LOP3", 0x013: "IABS", 0x015: "VABSDIFF4",
    0x016: "PRMT", 0x017: "IMNMX", 0x019: "SHF", 0x01C: "PLOP3", 0x020: "FMUL", 0x021: "FADD", 0x023: "FFMA",
    0x024: "IMAD", 0x025: "IMAD", 0x026: "IDP", 0x027: "IMAD", 0x028: "DMUL", 0x029: "DADD", 0x02A: "DSETP",
    0x02B: "DFMA", 0x030: "HADD2", 0x031: "HFMA2", 0x035: "HFMA2", 0x036: "VIADD", 0x03B: "LDSM", 0x03C: "HMMA",
    0x045: "I2FP", 0x046: "VIADDMNMX", 0x048: "VIMNMX", 0x082: "UMOV", 0x086: "VOTEU", 0x087: "USEL", 0x08C: "UISETP",
    0x090: "UIADD3", 0x091: "ULEA", 0x092: "ULOP3", 0x097: "UIADD3", 0x099: "USHF", 0x09C: "UPLOP3", 0x0A4: "UIMAD",
    0x0A5: "UIMAD", 0x0B9: "ULDC", 0x0BB: "ULDC", 0x0BD: "UFLO", 0x100: "FLO", 0x101: "BREV", 0x102: "FCHK",
    0x105: "F2I", 0x106: "I2F", 0x107: "FRND", 0x108: "MUFU", 0x109: "POPC", 0x110: "F2F", 0x111: "F2I", 0x112: "I2F",
    0x118: "NOP", 0x119: "S2R", 0x11A: "DEPBAR", 0x11B: "ENDCOLLECTIVE", 0x11D: "BAR", 0x141: "BSYNC", 0x142: "BREAK",
    0x144: "CALL", 0x145: "BSSY", 0x146: "YIELD", 0x147: "BRA", 0x148: "WARPSYNC", 0x14D: "EXIT", 0x150: "RET",
    0x155: "BMOV", 0x156: "BMOV", 0x15C: "BPT", 0x15D: "NANOSLEEP", 0x160: "TEX", 0x166: "TLD", 0x180: "LD",
    0x181: "LDG", 0x182: "LDC", 0x183: "LDL", 0x184: "LDS", 0x186: "STG", 0x187: "STL", 0x188: "STS", 0x189: "SHFL",
    0x18C: "ATOMS", 0x18D: "ATOMS", 0x18E: "RED", 0x18F: "CCTL", 0x192: "MEMBAR", 0x1A1: "MATCH", 0x1A3: "ATOMG",
    0x1A6: "REDG", 0x1A8: "ATOMG", 0x1A9: "ATOMG", 0x1AB: "ERRBAR", 0x1AC: "LDCU", 0x1AE: "LDGSTS",
    0x1AF: "LDGDEPBAR", 0x1C2: "R2UR", 0x1C3: "S2UR", 0x1C4: "REDUX",
}  # fmt: skip
"""Opcode names as in nvdisasm, by the low nine bits; three more bits encode the kinds of operands."""

_NEWER_NAMES = {0x18E: ((9, 0), "REDG"), 0x035: ((10, 0), "IADD")}
"""Opcodes with another meaning from a compute capability on."""

_TRUE_PREDICATE = 7


def decode_instruction(code: bytes, index: int, capability: tuple[int, int]) -> tuple[str, bool, int]:
    """Decode an instruction's name, whether it has a predicate, and its branch target.

    Parameters
    ----------
    code : bytes
        The instruction's 16 bytes.
    index : int
        The instruction's index.
    capability : tuple of int

    Returns
    -------
    tuple
        The name, or "?" if unknown; whether it is predicated; for a branch the index of the target instruction,
        otherwise -1.
    """
    word = int.from_bytes(code, "little")
    name = _NAMES.get(word & 0x1FF, "?")
    first_capability, newer_name = _NEWER_NAMES.get(word & 0x1FF, (capability, name))
    if capability >= first_capability:
        name = newer_name
    guard = word >> 12 & 15
    target = index + 1 + _branch_distance(word, capability) if name == "BRA" else -1
    return name, guard != _TRUE_PREDICATE, target


def _branch_distance(word: int, capability: tuple[int, int]) -> int:
    """Return a branch's distance from the next instruction, in instructions."""
    offset = word >> 34 & (1 << 48) - 1
    offset -= offset >> 47 << 48
    if capability >= _SPLIT_OFFSET_CAPABILITY:
        offset = (offset << 8) + (word >> 16 & 255)
    return 4 * offset // INSTRUCTION_BYTES
