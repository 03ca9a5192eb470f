"""Storage units of bit fields: the bytes that an access to a bit field reads or writes."""

from __future__ import annotations

from collections.abc import Sequence

from gpu.simulator.frontend.clang.parsing import Cursor


def find_storage_units(members: Sequence[Cursor], size: int) -> dict[Cursor, tuple[int, int]] | None:
    """Return the offset and size in bytes of the storage unit of each bit field of a struct.

    A unit has the size of the field's type, but contains no byte of a member that is no bit field, and none from
    beyond a bit field of width 0, as C++ forbids to write these. Bit fields whose units overlap share the largest one.

    Parameters
    ----------
    members : sequence of Cursor
        The members of the struct, in order.
    size : int
        The size of the struct in bytes.

    Returns
    -------
    dict or None
        None if a bit field has no such unit.
    """
    units: dict[Cursor, tuple[int, int]] = {}
    for number, member in enumerate(members):
        if _ends_unit(member):
            continue
        before = [each for each in members[:number] if _ends_unit(each)]
        after = [each for each in members[number:] if _ends_unit(each)]
        begin = _find_end(before[-1]) if before else 0
        end = after[0].field_offset // 8 if after else size
        first, last = member.field_offset // 8, (member.field_offset + member.bit_width - 1) // 8
        for length in (8, 4, 2, 1):
            start = first // length * length
            if length <= member.type.canonical.size and begin <= start and last < start + length <= end:
                units[member] = (start, length)
                break
        else:
            return None
    return {
        member: max(
            (other for other in units.values() if other[0] <= start and start + length <= sum(other)),
            key=lambda other: other[1],
        )
        for member, (start, length) in units.items()
    }


def _ends_unit(member: Cursor) -> bool:
    """Return whether a member is no bit field, or one of width 0."""
    return not member.is_bit_field or not member.bit_width


def _find_end(member: Cursor) -> int:
    """Return the offset of the end of a member in bytes."""
    return member.field_offset // 8 + (0 if member.is_bit_field else member.type.canonical.size)
