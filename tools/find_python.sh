#!/bin/sh
# Prints a Python that can set Lockstep up: the checkout's own if it works, else the newest of the system's.
for candidate in .venv/bin/python python3.13 python3.12 python3.11 python3 python3.14 python; do
    # Run it instead of only looking for it: a version manager's shim may exist without working.
    if "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
        echo "$candidate"
        exit 0
    fi
done
echo "lockstep: Python 3.11 or newer is needed and not found; on Debian or Ubuntu: sudo apt-get install python3 python3-venv" >&2
exit 1
