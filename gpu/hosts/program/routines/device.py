"""The only device of a program: its attributes and limits, and calls that have no effect on it."""

from __future__ import annotations

from gpu.hosts.driver.attributes import VALUE_BY_NUMBER, device_name
from gpu.hosts.program import errors
from gpu.hosts.program.errors import RefusedRoutineError
from gpu.hosts.program.mapped_memory import write_address, write_int, write_string

GREATEST_PRIORITY = -5
"""The greatest priority of a stream, as of recent GPUs; priorities do not change the order of operations here."""
_PROGRAM_ATTRIBUTES = {95: 1, 96: 0, 102: 1}
"""Values of attributes by number: launches whose blocks wait for each other, on several devices; virtual memory."""


class ProgramDevice:
    """The routines of the device, which has no state."""

    def do_device_count(self, target: int) -> None:
        write_int(target, 1)

    def do_get_device(self, target: int) -> None:
        write_int(target, 0)

    def do_set_device(self, device: int) -> None:
        if device:
            raise RefusedRoutineError(errors.INVALID_DEVICE)

    def do_device_attribute(self, target: int, number: int, device: int) -> None:
        self.do_set_device(device)
        value = VALUE_BY_NUMBER.get(number, _PROGRAM_ATTRIBUTES.get(number))
        if value is None:
            raise RefusedRoutineError(errors.INVALID_VALUE)
        write_int(target, value)

    def do_device_name(self, target: int, room: int, device: int) -> None:
        self.do_set_device(device)
        write_string(target, room, device_name())

    def do_version(self, target: int) -> None:
        write_int(target, 13_000)

    def do_priorities(self, least: int, greatest: int) -> None:
        for target, priority in ((least, 0), (greatest, GREATEST_PRIORITY)):
            if target:
                write_int(target, priority)

    def do_no_peer(self, target: int, device: int, peer: int) -> None:
        write_int(target, 0)
        self.do_set_device(device | peer)

    def do_refuse_peer(self, peer: int) -> None:
        self.do_set_device(peer)
        raise RefusedRoutineError(errors.PEER_ACCESS_UNSUPPORTED)

    def do_get_limit(self, target: int, limit: int) -> None:
        write_address(target, {0: 1024, 1: 1 << 20, 2: 8 << 20}.get(limit, 2))

    def do_synchronize(self) -> None:
        """Do nothing: all work is complete."""

    def do_nothing(self) -> None:
        """Ignore advice and preferences."""

    def do_invalid_value(self) -> None:
        raise RefusedRoutineError(errors.INVALID_VALUE)

    def do_not_supported(self) -> None:
        raise RefusedRoutineError(errors.NOT_SUPPORTED)

    def do_error_name(self, number: int, target: int, room: int) -> None:
        write_string(target, room, errors.ERRORS.get(number, ("unrecognized error code", ""))[0])

    def do_error_text(self, number: int, target: int, room: int) -> None:
        write_string(target, room, errors.ERRORS.get(number, ("", "unrecognized error code"))[1])
